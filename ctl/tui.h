/*
 * tui.h - figures and bars for people: pure text, no I/O but the question what stderr or stdout is.
 */
#ifndef XF_CTL_TUI_H
#define XF_CTL_TUI_H

#include "common/base/json.h"
#include "common/base/str.h"

struct xf_tui {
    bool terminal; /* cursor movement is understood */
    bool color;    /* a terminal, and NO_COLOR is not set */
    size_t width;  /* columns, at least 20 */
    size_t height; /* rows, at least 4; 24 when nothing tells */
};

/** What descriptor fd is. */
void xf_tui_init(struct xf_tui *t, int fd);
/** "1.5 MiB", "12 B": four digits at most. */
void xf_tui_put_bytes(struct xf_buf *b, double bytes);
/** "1,234,567". */
void xf_tui_put_count(struct xf_buf *b, uint64_t n);
/** "2 d 03:04:05" or "04:05"; "-" when negative. */
void xf_tui_put_seconds(struct xf_buf *b, double s);
/** [#####.....] of `width` cells in all, `width` at least 3. */
void xf_tui_put_bar(struct xf_buf *b, double part, size_t width);
/** One job of `status --json` as lines of at most t->width columns; what does not fit goes on
 * below. */
void xf_tui_put_job(struct xf_buf *b, const struct xf_json *st, const struct xf_tui *t);
/** As many lines of the text as the window has rows; the last tells how many there is no room for.
 */
void xf_tui_put_window(struct xf_buf *b, struct xf_str text, const struct xf_tui *t);
/** One job as one line, for logs. */
void xf_tui_put_job_line(struct xf_buf *b, const struct xf_json *st);
/** The agents of `status --json` as a table; why one is unfit is on a line of its own below it. */
void xf_tui_put_agents(struct xf_buf *b, const struct xf_json *agents, const struct xf_tui *t);

#endif
