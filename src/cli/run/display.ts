/** Shows the progress of a run on standard error: a live bar on a terminal, one line per change elsewhere. */
import { Presets, SingleBar } from 'cli-progress'
import type { ProgressView } from '../server/job-answers.ts'
import { printLine, type Terminal, toPrintable } from '../terminal.ts'
import type { FollowDisplay } from './follow.ts'

export interface RunDisplay extends FollowDisplay {
  say(text: string): void
  /** Removes the bar; the lines that were printed stay. */
  end(): void
}

// Wide enough for "KSampler 21/50" and a file name, narrow enough for a small window.
const MAX_MESSAGE = 40

export function createDisplay(terminal: Terminal): RunDisplay {
  return terminal.stderr.isTTY ? createBarDisplay(terminal) : createLineDisplay(terminal)
}

function describeStatus(status: string, queuePosition: number | null): string {
  return queuePosition === null ? status : `${status}, position ${queuePosition}`
}

function shorten(text: string): string {
  return toPrintable(text).slice(0, MAX_MESSAGE)
}

function createBarDisplay(terminal: Terminal): RunDisplay {
  const bar = new SingleBar(
    {
      format: '{bar} {percentage}% {message}',
      stream: terminal.stderr,
      hideCursor: true,
      clearOnComplete: true,
      barsize: 30,
    },
    Presets.shades_classic,
  )
  let isShown = false
  const update = (value: number | null, message: string) => {
    if (!isShown) bar.start(1000, 0, { message })
    isShown = true
    if (value === null) bar.update({ message })
    else bar.update(Math.round(value * 1000), { message })
  }
  const end = () => {
    if (isShown) bar.stop()
    isShown = false
  }
  let lastValue = 0
  return {
    status: (status, position) => update(null, shorten(describeStatus(status, position))),
    progress({ value, message }) {
      lastValue = value
      update(value, shorten(message ?? ''))
    },
    output: (name) => update(lastValue, shorten(name)),
    say(text) {
      end()
      printLine(terminal.stderr, toPrintable(text))
    },
    end,
  }
}

function createLineDisplay(terminal: Terminal): RunDisplay {
  let last = ''
  const say = (text: string) => {
    if (text !== last) printLine(terminal.stderr, toPrintable(text))
    last = text
  }
  return {
    status: (status, position) => say(describeStatus(status, position)),
    progress: (progress: ProgressView) =>
      say(`${Math.round(progress.value * 100)}% ${progress.message ?? ''}`.trimEnd()),
    output: (name) => say(`output ${name}`),
    say,
    end() {},
  }
}
