#!/usr/bin/env python3
"""Draws the demo's screen as an SVG picture, for the README.

Runs `anabranch demo` on a pseudo terminal of a fixed size, lets a terminal emulator (pyte) read
what the program writes, and writes the screen as it stands after some seconds.

Usage: tools/demo_picture.py --anabranch target/release/anabranch --out docs/demo.svg
       [--columns 100] [--lines 34] [--seconds 6]
"""

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from xml.sax.saxutils import escape

import pyte

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 14
COLOURS = {"default": "#d8dee9", "cyan": "#7fdbca", "dim": "#8090a0"}


def run(command, columns, lines, seconds):
    """The emulator's screen after `seconds` of `command`."""
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            stream.feed(os.read(terminal, 1 << 16))
        except OSError:
            break
    os.write(terminal, b"q")
    os.close(terminal)
    os.waitpid(child, 0)
    return screen


def svg(screen):
    """The screen's characters as an SVG document: one text element for each run of one style."""
    width = round(screen.columns * CELL_WIDTH + 2 * MARGIN)
    height = round(screen.lines * CELL_HEIGHT + 2 * MARGIN)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        'font-size="14" xml:space="preserve">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b2330"/>',
    ]
    for line in range(screen.lines):
        row = [screen.buffer[line][column] for column in range(screen.columns)]
        start = 0
        while start < len(row):
            end = start
            while end < len(row) and style(row[end]) == style(row[start]):
                end += 1
            text = "".join(cell.data for cell in row[start:end])
            if text.strip():
                x, y = MARGIN + start * CELL_WIDTH, MARGIN + (line + 0.75) * CELL_HEIGHT
                colour, weight = style(row[start])
                length = len(text) * CELL_WIDTH
                out.append(
                    f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-weight="{weight}" '
                    f'textLength="{length:.1f}">{escape(text)}</text>'
                )
            start = end
    out.append("</svg>\n")
    return "\n".join(out)


def style(cell):
    return COLOURS.get(cell.fg, COLOURS["default"]), "bold" if cell.bold else "normal"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=6)
    wanted = parser.parse_args()
    screen = run([wanted.anabranch, "demo"], wanted.columns, wanted.lines, wanted.seconds)
    if not any(line.strip() for line in screen.display):
        sys.exit("the demo has shown nothing")
    with open(wanted.out, "w", encoding="utf-8") as file:
        file.write(svg(screen))


if __name__ == "__main__":
    main()
