/** Calls that wait for minutes: what each costs in memory, socket included, once the provider has accepted it. */
import { Agent, request } from 'node:http'
import type { Figure } from '../../kit/figure.ts'
import { forkServer } from '../../kit/server-child.ts'

const CALLS = 5000
const WAVE = 250
const BODY = JSON.stringify({ prompt: 'a lighthouse at dusk, oil on canvas', n: 1 })

export async function heldCalls(): Promise<Figure[]> {
  await using provider = await forkServer('bench/servers/fake-provider.ts')
  await using service = await forkServer('bench/servers/router.ts', { providerUrl: provider.url })
  const key = await service.ask<string>('key')
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  const held: { destroy(): void }[] = []
  const hold = (index: number) => {
    const outgoing = request(`${service.url}/v2/models/bench/poll`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key, 'idempotency-key': `held-${index}` },
    })
    outgoing.on('error', () => {})
    outgoing.end(BODY)
    held.push(outgoing)
  }
  // The first calls allocate what the service needs only once.
  for (let index = 0; index < WAVE; index++) hold(index)
  await service.ask('untilHeld', WAVE)
  const before = await service.settledUsage()
  for (let index = WAVE; index < CALLS + WAVE; index += WAVE) {
    for (let at = index; at < index + WAVE; at++) hold(at)
    await service.ask('untilHeld', index + WAVE)
  }
  const after = await service.settledUsage()
  for (const call of held) call.destroy()
  agent.destroy()
  return [
    {
      name: `router: resident memory per held call (${CALLS})`,
      measured: (after.rssBytes - before.rssBytes) / CALLS / 1024,
      unit: 'KiB',
      bar: 40,
      direction: 'at_most',
      detail: { before, after },
    },
  ]
}
