// SPDX-License-Identifier: Apache-2.0
// Included in front of each file of the build that counts: gcov writes what it has counted at the
// end of main() and in exit(), and knows nothing of _exit() and execvp(). No header of the system
// is included here, whose names some file may use for its own.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
void __gcov_dump(void);
void counted_exit(int status) __attribute__((weak, noreturn));
void counted_exit(int status)
{
    __gcov_dump();
    __builtin__exit(status);
}
int counted_execvp(const char *file, char *const argv[]) __attribute__((weak));
int counted_execvp(const char *file, char *const argv[])
{
    return __builtin_execvp(file, argv); // where it is a builtin, the compiler has it written
}
#ifdef __cplusplus
}
#endif
#define _exit counted_exit
#define execvp counted_execvp
