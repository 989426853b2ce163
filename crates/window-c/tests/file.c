/* A program in C that keeps records in a range of a file, on the window of a drive: file DRIVE FILE, in a guest. */
#include "lodger_window.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, lodger_window_error()); return 1; } } while (0)
enum { BYTES = 16384 };

int main(int argc, char **argv) {
    struct lodger_window *window;
    struct lodger_window_extent extents[4] = {{0, 0, 0}}, first;
    char bytes[BYTES], found[64] = {0};
    size_t count = 4;
    int fd, reader;
    CHECK(argc == 3);
    fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    reader = open(argv[2], O_RDONLY);
    memset(bytes, 'a', BYTES);
    CHECK(fd >= 0 && reader >= 0 && write(fd, bytes, BYTES) == BYTES);
    CHECK(lodger_window_open(argv[1], &window) == 0);
    CHECK(lodger_window_extents(window, fd, 0, BYTES, extents, &count) == 0);
    CHECK(count == 1 && extents[0].from == 0 && extents[0].bytes == BYTES && extents[0].lba > 0);
    /* No more is written than there is room for. */
    first = extents[0];
    memset(extents, 0, sizeof extents);
    count = 0;
    CHECK(lodger_window_extents(window, fd, 4096, 8192, extents, &count) == 0);
    CHECK(count == 1 && extents[0].bytes == 0);
    CHECK(lodger_window_extents(window, fd, 4096, 8192, extents, &count) == 0);
    CHECK(extents[0].from == 4096 && extents[0].bytes == 8192 && extents[0].lba > first.lba && extents[1].bytes == 0);

    CHECK(lodger_window_pin_file(window, 1, reader, 4096, 0, 8192) == -EACCES);
    CHECK(lodger_window_pin_file(window, 1, fd, 4096, 0, 1 << 20) == -EINVAL);
    CHECK(lodger_window_pin_file(window, 1, fd, 4096, 0, 8192) == 0);
    CHECK(lodger_window_pin_file(window, 1, fd, 4096, 0, 8192) == -EEXIST);
    close(fd);
    CHECK(lodger_window_load(window, 0, found, 5) == 0 && memcmp(found, "aaaaa", 5) == 0);
    CHECK(pread(reader, found, 5, 4096) == -1 && errno == EIO);
    CHECK(lodger_window_store(window, 100, "hello, file", 11) == 0);
    CHECK(lodger_window_sync(window, 1) == 0);
    lodger_window_close(window);
    /* Another program takes it up; not at another place of the file. */
    fd = open(argv[2], O_RDWR);
    CHECK(lodger_window_open(argv[1], &window) == 0);
    CHECK(lodger_window_resume_file(window, 1, fd, 8192) == -ESTALE);
    CHECK(lodger_window_resume_file(window, 1, fd, 4096) == 0);
    CHECK(lodger_window_flush(window, 1) == 0);
    CHECK(pread(reader, found, 12, 4096 + 99) == 12 && memcmp(found, "ahello, file", 12) == 0);
    /* One that is cut short meanwhile is told. */
    CHECK(lodger_window_pin_file(window, 1, fd, 4096, 0, 8192) == 0);
    CHECK(ftruncate(fd, 0) == 0);
    CHECK(lodger_window_flush(window, 1) == -ESTALE && strstr(lodger_window_error(), "not in the blocks"));
    CHECK(lodger_window_flush(window, 1) == -ENOENT);
    lodger_window_close(window);
    return 0;
}
