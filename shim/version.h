/* The version of the package, as pyshim/__init__.py has it. A build may say another one. */
#pragma once

#ifndef OVERLAP_VERSION
#define OVERLAP_VERSION "0.1.0"
#endif
