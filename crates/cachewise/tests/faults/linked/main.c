/* The static library in a C program, linked with --gc-sections. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

extern size_t library_attempt(void *dst, const void *src, size_t len);

int main(void)
{
    static char dst[2000];
    char *first = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (first == MAP_FAILED || mprotect(first + 4096, 4096, PROT_NONE))
        return 2;
    if (library_attempt(dst, first + 4096 - 321, sizeof dst) != sizeof dst - 321)
        return 3;
    puts("all recovered");
    return 0;
}
