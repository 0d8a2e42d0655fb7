/** How the engines stand, in figures. */
import { getJson } from './client.ts'

export interface EngineFigures {
  /** Take jobs, with room for one. */
  readonly ready: number
  readonly busy: number
  readonly starting: number
  readonly away: number
  readonly running: number
  readonly slots: number
}

export function getEngines(signal?: AbortSignal): Promise<EngineFigures> {
  return getJson<EngineFigures>('/console/v1/engines', signal)
}
