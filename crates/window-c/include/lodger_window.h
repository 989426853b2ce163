/* The byte window of a drive (lodger serve --drive 2b-ssd): blocks are pinned to it, and are bytes then, stored and loaded
 * without a command; they outlive a loss of power once they are synced. Link with -llodger_window_c.
 *
 * Functions return 0, or a negative errno: -ENOENT nothing is pinned as that entry, -EEXIST the entry is in use, -EBUSY later
 * it can be done, -EAGAIN another program has the window, -EINVAL lengths and places that there are not, of files -EOPNOTSUPP,
 * -EACCES and -ESTALE as said there, -EIO all else. lodger_window_error() has it in words.
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

/* BA_PIN of a file's range: `bytes` bytes of the file from `from` on, all multiples of 4096, in the blocks where an ext4 on the window's drive
 * keeps them. fd is open for reading and writing, and may be closed afterwards: the window has a descriptor of its own until the
 * flush of the entry. Until then the drive refuses reads and writes of the range through the file; nobody may write it, have it
 * mapped, truncate, punch or defragment it. The flush drops the file's cached pages, and returns -ESTALE, flushed all the same, if the
 * file is in other blocks by then. -EOPNOTSUPP: its blocks are not its bytes (holes, never written, inline, shared, encrypted, journalled
 * data), in several pieces, or not on that drive; or the window is one in a file. -EACCES: open for reading alone. */
int lodger_window_pin_file(struct lodger_window *window, uint8_t entry, int fd, uint64_t from, uint64_t at, uint64_t bytes);
/* After a program, a machine or the drive's power has ended with a range of a file pinned: takes up the entry, which must be the file's blocks
 * from `from` on (else -ESTALE). */
int lodger_window_resume_file(struct lodger_window *window, uint8_t entry, int fd, uint64_t from);

/* A part of a file's range that is in one piece on the drive. */
struct lodger_window_extent {
    uint64_t from;  /* Where in the file, bytes. */
    uint64_t lba;   /* First block. */
    uint64_t bytes;
};
/* Where a file's range lies: as many extents as there are, and are written as there is room (`count` before; how many there are after). */
int lodger_window_extents(struct lodger_window *window, int fd, uint64_t from, uint64_t bytes,
                          struct lodger_window_extent *extents, size_t *count);

/* What was wrong in the last call of this thread that failed, and what to do; until the next that does. Never null. */
const char *lodger_window_error(void);

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
