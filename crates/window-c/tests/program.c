/* A program in C that uses a window: what it stores is in the blocks, and comes back. */
#include "lodger_window.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, #what); return 1; } } while (0)

int main(int argc, char **argv) {
    struct lodger_window *window, *other;
    struct lodger_window_extent extents[2];
    size_t count = 2;
    char bytes[16] = {0};
    CHECK(argc == 2);
    CHECK(lodger_window_open("/dev/null", &window) == -ENOENT);
    CHECK(lodger_window_open(argv[1], &window) == 0);
    CHECK(lodger_window_open(argv[1], &other) == -EAGAIN);
    CHECK(lodger_window_bytes(window) == 8 << 20);
    CHECK(lodger_window_sync(window, 3) == -ENOENT);
    CHECK(lodger_window_pin(window, 3, 800, 65536, 100) == -EINVAL);
    CHECK(lodger_window_pin(window, 3, 800, 65536, 8192) == 0);
    CHECK(lodger_window_pin(window, 3, 8000, 0, 8192) == -EEXIST);
    CHECK(lodger_window_pin(window, 4, 808, 0, 4096) == -EIO);
    CHECK(lodger_window_store(window, 65536 + 4100, "hello, window", 13) == 0);
    CHECK(lodger_window_store(window, (8 << 20) - 1, "hello", 5) == -EINVAL);
    CHECK(lodger_window_sync(window, 3) == 0);
    CHECK(lodger_window_read_dma(window, 3, 4100, bytes, 16) == 0);
    CHECK(memcmp(bytes, "hello, window\0\0", 16) == 0);
    CHECK(lodger_window_read_dma(window, 3, 8192, bytes, 4) == -EINVAL);
    CHECK(lodger_window_flush(window, 3) == 0);
    CHECK(lodger_window_flush(window, 3) == -ENOENT);
    lodger_window_close(window);
    /* Another time, another place in the window: the same blocks. */
    CHECK(lodger_window_open(argv[1], &window) == 0);
    CHECK(lodger_window_pin(window, 0, 808, 0, 4096) == 0);
    memset(bytes, 0, sizeof bytes);
    CHECK(lodger_window_load(window, 4, bytes, 13) == 0);
    CHECK(memcmp(bytes, "hello, window", 13) == 0);
    /* No file system lies on a window in a file: files are for drives, and each refusal is told in words. */
    CHECK(lodger_window_pin_file(window, 1, -1, 0, 4096, 4096) == -EBADF);
    CHECK(strstr(lodger_window_error(), "descriptor"));
    CHECK(lodger_window_pin_file(window, 1, open(argv[1] + 5, O_RDWR), 0, 4096, 4096) == -EOPNOTSUPP);
    CHECK(strstr(lodger_window_error(), "this window is in a file") && strstr(lodger_window_error(), "hint: "));
    CHECK(lodger_window_pin_file(window, 1, 0, UINT64_MAX, 4096, 4096) == -EINVAL);
    CHECK(lodger_window_resume_file(window, 1, 0, 0) == -ENOENT);
    CHECK(lodger_window_extents(window, 0, 0, 4096, extents, &count) == -EOPNOTSUPP && count == 2);
    CHECK(lodger_window_extents(window, 0, 0, 4096, NULL, &count) == -EINVAL);
    lodger_window_close(window);
    return 0;
}
