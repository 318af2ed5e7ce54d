/* Does a communication launch overlap anything at all? */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

struct overlap_stream;

/* Number of communication launches that this thread will not follow; nothing below is called for them. */
extern __thread uint32_t follow_skips __attribute__((tls_model("initial-exec")));
/* This thread has launched communication; follow its next launches. overlapped: earlier launches already overlap it. */
void follow_begin(struct overlap_stream *communication, vendor_stream stream, enum default_stream null_stream,
                  bool overlapped);
/* This thread launches computation. Only called while it follows. */
void follow_launch(vendor_stream stream, enum default_stream null_stream, uint64_t word);
/* The host has waited: communication that is finished cannot be overlapped any more. */
void follow_host(void);
/* True if this thread has since launched computation on another stream. */
bool follow_computed(void);
void follow_forget(void);

#pragma GCC visibility pop
