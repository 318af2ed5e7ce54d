/* The parameters of a row of driver.def: their number, then the type and name of each, as 2, CUevent, event, CUstream, stream.
 * PARAMETERS(2, CUevent, event, CUstream, stream) is `CUevent event, CUstream stream`, ARGUMENTS of them `event, stream`. */
#pragma once

#define PARAMETERS(...) EACH(ROW_TYPED, ROW_AND_TYPED, __VA_ARGS__)
#define ARGUMENTS(...) EACH(ROW_NAMED, ROW_AND_NAMED, __VA_ARGS__)

#define ROW_TYPED(type, name) type name
#define ROW_AND_TYPED(type, name) , type name
#define ROW_NAMED(type, name) name
#define ROW_AND_NAMED(type, name) , name

/* A number that is not that of the parameters does not compile. */
#define EACH(first, next, count, ...) EACH_##count(first, next, __VA_ARGS__)
#define EACH_1(first, next, type, name) first(type, name)
#define EACH_2(first, next, type, name, ...) first(type, name) EACH_1(next, next, __VA_ARGS__)
#define EACH_3(first, next, type, name, ...) first(type, name) EACH_2(next, next, __VA_ARGS__)
#define EACH_4(first, next, type, name, ...) first(type, name) EACH_3(next, next, __VA_ARGS__)
#define EACH_5(first, next, type, name, ...) first(type, name) EACH_4(next, next, __VA_ARGS__)
#define EACH_6(first, next, type, name, ...) first(type, name) EACH_5(next, next, __VA_ARGS__)
#define EACH_7(first, next, type, name, ...) first(type, name) EACH_6(next, next, __VA_ARGS__)
#define EACH_8(first, next, type, name, ...) first(type, name) EACH_7(next, next, __VA_ARGS__)
#define EACH_9(first, next, type, name, ...) first(type, name) EACH_8(next, next, __VA_ARGS__)
#define EACH_10(first, next, type, name, ...) first(type, name) EACH_9(next, next, __VA_ARGS__)
#define EACH_11(first, next, type, name, ...) first(type, name) EACH_10(next, next, __VA_ARGS__)
#define EACH_12(first, next, type, name, ...) first(type, name) EACH_11(next, next, __VA_ARGS__)
#define EACH_13(first, next, type, name, ...) first(type, name) EACH_12(next, next, __VA_ARGS__)
#define EACH_14(first, next, type, name, ...) first(type, name) EACH_13(next, next, __VA_ARGS__)
