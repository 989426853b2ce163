/* The byte window of a drive (lodger serve --drive 2b-ssd): blocks are pinned to it, and are bytes then, stored and loaded
 * without a command; they outlive a loss of power once they are synced. Link with -llodger_window_c.
 *
 * Functions return 0, or a negative errno: -ENOENT nothing is pinned as that entry, -EEXIST the entry is in use, -EBUSY later
 * it can be done, -EAGAIN another program has the window, -EINVAL lengths and places that there are not, -EIO all else.
 * A window is used by one thread at a time. */
#ifndef LODGER_WINDOW_H
#define LODGER_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lodger_window;

/* The window of a drive ("/dev/nvme0n1"), or one in a file, to try a program ("file:PATH"). */
int lodger_window_open(const char *place, struct lodger_window **window);
void lodger_window_close(struct lodger_window *window);
uint64_t lodger_window_bytes(const struct lodger_window *window);

/* BA_PIN: blocks from lba on become `bytes` bytes of the window from `at` on; both are multiples of 4096. */
int lodger_window_pin(struct lodger_window *window, uint8_t entry, uint64_t lba, uint64_t at, uint64_t bytes);
/* BA_SYNC: what was stored outlives power. */
int lodger_window_sync(struct lodger_window *window, uint8_t entry);
/* BA_FLUSH: the blocks hold it, durably, and are blocks again. */
int lodger_window_flush(struct lodger_window *window, uint8_t entry);
/* BA_READ_DMA: bytes of an entry from `at` on; both are multiples of 4. */
int lodger_window_read_dma(const struct lodger_window *window, uint8_t entry, uint64_t at, void *into, size_t bytes);

int lodger_window_store(struct lodger_window *window, uint64_t at, const void *from, size_t bytes);
int lodger_window_load(const struct lodger_window *window, uint64_t at, void *into, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
