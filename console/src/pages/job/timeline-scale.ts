/**
 * Time to place on a line. Long stretches in which nothing happened are compressed to a mark of fixed width, so that a job that waited
 * an hour and ran ten seconds shows its ten seconds. Pure.
 */
export interface Stretch {
  readonly from: number
  readonly to: number
}

export interface Scale {
  /** 0 to 1. */
  at(time: number): number
  readonly gaps: readonly Stretch[]
  readonly from: number
  readonly to: number
}

/** Below this an idle stretch is drawn as long as it was. */
const MIN_GAP_MS = 5000
/** A gap is long when it is more than this share of what was busy. */
const GAP_SHARE = 0.5
const GAP_WIDTH = 0.04

export function toScale(busy: readonly Stretch[], whole: Stretch): Scale {
  const merged = merge(busy.filter(({ from, to }) => to >= from))
  const busyMs = Math.max(
    1,
    merged.reduce((sum, { from, to }) => sum + to - from, 0),
  )
  const gaps: Stretch[] = []
  let reached = whole.from
  for (const { from, to } of [...merged, { from: whole.to, to: whole.to }]) {
    const idle = from - reached
    if (idle > MIN_GAP_MS && idle > busyMs * GAP_SHARE) gaps.push({ from: reached, to: from })
    reached = Math.max(reached, to)
  }
  const gapWidth = Math.min(GAP_WIDTH, 0.4 / Math.max(1, gaps.length))
  const gapMs = gaps.reduce((sum, { from, to }) => sum + to - from, 0)
  const shownMs = Math.max(1, whole.to - whole.from - gapMs)
  const perMs = (1 - gaps.length * gapWidth) / shownMs
  const at = (time: number) => {
    let place = 0
    let from = whole.from
    const until = Math.min(whole.to, Math.max(whole.from, time))
    for (const gap of gaps) {
      if (until <= gap.from) break
      place += (gap.from - from) * perMs
      place += gapWidth * Math.min(1, (until - gap.from) / Math.max(1, gap.to - gap.from))
      from = gap.to
    }
    return Math.min(1, place + Math.max(0, until - from) * perMs)
  }
  return { at, gaps, from: whole.from, to: whole.to }
}

/** Round steps, as many as fit. */
export function toTicks(spanMs: number, most: number): readonly number[] {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
    [1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
    [1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
    [1, 2, 4, 8, 24].map((hours) => hours * 3_600_000),
  )
  const step = steps.find((candidate) => spanMs / candidate <= most) ?? spanMs
  return Array.from({ length: Math.floor(spanMs / step) + 1 }, (_, index) => index * step)
}

function merge(stretches: readonly Stretch[]): readonly Stretch[] {
  const sorted = stretches.toSorted((a, b) => a.from - b.from)
  const merged: { from: number; to: number }[] = []
  for (const { from, to } of sorted) {
    const last = merged.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else merged.push({ from, to })
  }
  return merged
}
