/** The first job of a server that has come back, with its weights loaded beforehand and without. The server takes two seconds for a load. */
import { pictureGraph, startFleetApp } from '../../../test/support/app/fleet-app.ts'
import { call } from '../../../test/support/clients/call.ts'
import { waitUntil } from '../../../test/support/wait-until.ts'
import type { Figure } from '../../kit/figure.ts'

const LOAD_MS = 2000
const ROUNDS = 7
const WEIGHTS = 'base.safetensors'
const ADMIN_TOKEN = 'a-token-of-the-bench'

/** Its weights are needed for one of its outputs. */
const toGraph = (round: number) => ({
  ...pictureGraph(round, WEIGHTS),
  '4': { class_type: 'PreviewAny', inputs: { source: ['3', 0] } },
})

/** Milliseconds from the submit to the end. */
async function measure(isWarm: boolean): Promise<number[]> {
  const servers = [{ checkpoints: [WEIGHTS], loadMs: LOAD_MS }]
  await using app = await startFleetApp({ servers, adminToken: ADMIN_TOKEN })
  const [fake] = app.fakes
  const admin = (method: string, path: string, body?: string) =>
    call(app.url, `/admin/v1${path}`, { method, body, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
  const untilState = (state: string) =>
    waitUntil(async () => (await admin('GET', '/engines')).json.engines[0].state === state)
  if (isWarm) await admin('PUT', '/engines/gpu1/warm', JSON.stringify({ weights: [WEIGHTS] }))
  const took: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    await fake.restart({ downUntil: untilState('lost') })
    await untilState('ready')
    const beganMs = performance.now()
    await app.until(await app.submit(toGraph(round)), 'succeeded')
    took.push(performance.now() - beganMs)
  }
  return took
}

export async function warmStart(): Promise<Figure[]> {
  const [cold, warm] = [median(await measure(false)), median(await measure(true))]
  const name = 'first job of a server that was warmed, of that of a cold one, p50'
  return [
    { name, measured: warm / cold, unit: '%', bar: 0.5, direction: 'at_most', detail: { warm, cold, loadMs: LOAD_MS } },
  ]
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]
}
