import type { EngineFigures } from '../text/engine-words.ts'
import { getJson } from './client.ts'

/** How the engines stand, in figures. */
export function getEngines(signal?: AbortSignal): Promise<EngineFigures> {
  return getJson<EngineFigures>('/console/v1/engines', signal)
}
