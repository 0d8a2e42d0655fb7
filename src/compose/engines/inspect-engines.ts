/** Inspects the configured ComfyUI servers for `atelier doctor`: asks each, starts none. Works while the service runs too. */

import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { openComfyEngine } from '../../adapters/engines/comfyui/comfy-engine.ts'
import type { FleetConfig } from '../../config/blocks/fleet-config.ts'
import { installedWeights } from '../../domain/engine/weights/weight-files.ts'

export type EngineCondition =
  | { readonly state: 'ready'; readonly id: string; readonly says: string; readonly lastError: string | null }
  | { readonly state: 'absent'; readonly id: string; readonly reason: string }
  /** Its process is started with the service. */
  | { readonly state: 'launched'; readonly id: string; readonly command: string }

export async function inspectEngines(config: FleetConfig, { withinMs }: { readonly withinMs: number }) {
  const remote = await Promise.all(config.urls.map((url) => inspectServer(url, withinMs)))
  const launched = config.launches.map(
    (command, index): EngineCondition => ({ state: 'launched', id: `launched-${index + 1}`, command }),
  )
  return [...remote, ...launched]
}

async function inspectServer(url: string, withinMs: number): Promise<EngineCondition> {
  const id = url.replace(/^https?:\/\//, '')
  await using engine = await openComfyEngine({
    server: { kind: 'remote', url: new URL(url) },
    id,
    clock: systemClock,
    log: silentLog,
  })
  await engine.untilReady(AbortSignal.timeout(withinMs))
  const { state, version, lastError } = engine.health()
  if (state !== 'ready') {
    return { state: 'absent', id, reason: lastError?.message ?? `no answer within ${withinMs / 1000} s` }
  }
  const { queueRemaining, device } = engine.details()
  const catalog = engine.catalog()
  const says = [
    `ComfyUI ${version ?? 'of an unknown version'}`,
    ...(device === null ? [] : [device.name]),
    `${queueRemaining ?? 0} in its queue`,
    `${catalog.classTypes().length} node classes`,
    `${installedWeights(catalog).size} weights`,
  ]
  return { state: 'ready', id, says: says.join(', '), lastError: lastError?.message ?? null }
}
