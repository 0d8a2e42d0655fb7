/** Times, sizes and money as a person reads them. Pure: what time it is, and in which zone, is given. */
const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** A span that has ended: `8.9 s`, `2 m 05 s`, `1 h 03 m`. */
export function formatSpan(ms: number): string {
  const span = Math.max(0, ms)
  if (span < 950) return `${Math.round(span)} ms`
  if (span < 9950) return `${(span / SECOND_MS).toFixed(1)} s`
  if (span < MINUTE_MS) return `${Math.round(span / SECOND_MS)} s`
  if (span < HOUR_MS) {
    const seconds = Math.floor(span / SECOND_MS)
    return `${Math.floor(seconds / 60)} m ${pad(seconds % 60)} s`
  }
  const minutes = Math.floor(span / MINUTE_MS)
  if (span < 2 * DAY_MS) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} m`
  return `${Math.round(span / DAY_MS)} days`
}

/** A span that goes on, whole seconds, so that it does not flicker: `0:08`, `12:40`, `1:03:20`. */
export function formatRunning(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS))
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`
}

/** About how long: `~40 s`, `~3 m`. */
export function formatEstimate(seconds: number): string {
  if (seconds < 60) return `~${Math.max(1, Math.round(seconds / 5) * 5)} s`
  if (seconds < 3600) return `~${Math.round(seconds / 60)} m`
  return `~${Math.round(seconds / 360) / 10} h`
}

export function formatAgo(at: number, now: number): string {
  const span = Math.max(0, now - at)
  if (span < 5 * SECOND_MS) return 'now'
  if (span < MINUTE_MS) return `${Math.floor(span / SECOND_MS)} s ago`
  if (span < HOUR_MS) return `${Math.floor(span / MINUTE_MS)} m ago`
  if (span < DAY_MS) return `${Math.floor(span / HOUR_MS)} h ago`
  return `${Math.floor(span / DAY_MS)} d ago`
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const units = ['KiB', 'MiB', 'GiB', 'TiB'] as const
  let size = bytes / 1024
  let unit = 0
  while (size >= 1023.95 && unit < units.length - 1) {
    size /= 1024
    unit++
  }
  return `${size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`
}

/**
 * Money comes as text and stays text: at least two digits behind the point, no zero beyond them, and never a sum that was rounded to
 * nothing.
 */
export function formatUsd(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)
  if (match === null) return text
  const [, sign, whole, behind = ''] = match
  const cents = behind.replace(/0+$/, '').padEnd(2, '0')
  return `${sign === '-' ? '−' : ''}$${group(whole)}.${cents}`
}

export function formatCount(count: number): string {
  return group(String(count))
}

export function formatTime(at: number, zone: string): string {
  return formatter(zone, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(at)
}

export function formatDateTime(at: number, zone: string): string {
  return formatter(zone, {
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
  }).format(at)
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`
}

const formatters = new Map<string, Intl.DateTimeFormat>()

function formatter(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = zone + Object.keys(options).length
  const made = formatters.get(key) ?? new Intl.DateTimeFormat('sv-SE', { ...options, timeZone: zone })
  formatters.set(key, made)
  return made
}

function group(digits: string): string {
  return digits.replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',')
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}

export interface EngineFigures {
  /** Take jobs, with room for one. */
  readonly ready: number
  readonly busy: number
  readonly starting: number
  readonly away: number
  readonly running: number
  readonly slots: number
}

interface EngineWords {
  readonly icon: 'check' | 'clock' | 'warn'
  /** Named by the state of a job that has this colour. */
  readonly colour: 'succeeded' | 'running' | 'canceling' | 'failed'
  readonly text: string
}

/** How the engines stand, in one line: what is wrong comes first. Pure. */
export function engineWords({ ready, busy, starting, away, running, slots }: EngineFigures): EngineWords {
  const taking = ready + busy
  const rest = [starting > 0 && `${starting} starting`, away > 0 && `${away} away`].filter(Boolean).join(', ')
  if (taking > 0) {
    const text = `${plural(taking, 'engine')} at work${rest === '' ? '' : `, ${rest}`} · ${running} of ${plural(slots, 'slot')} in use`
    return away > 0 ? { icon: 'warn', colour: 'canceling', text } : { icon: 'check', colour: 'succeeded', text }
  }
  if (starting > 0) return { icon: 'clock', colour: 'running', text: `no engine takes jobs yet: ${rest}` }
  const text = away > 0 ? `no engine takes jobs: ${rest}` : 'no engine: jobs wait until there is one'
  return { icon: 'warn', colour: 'failed', text }
}
