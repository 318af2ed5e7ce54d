/* The version of the package, equal to that in pyshim/__init__.py. A build may define another one. */
#pragma once

#ifndef OVERLAP_VERSION
#define OVERLAP_VERSION "0.3.0"
#endif
