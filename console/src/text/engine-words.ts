/** How the engines stand, in one line: what is wrong comes first. Pure. */
import { plural } from './format.ts'

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
