/** The whole service with fake ComfyUI servers. Nothing gives up by the clock except what a test shortens. */
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import type { ComfyBounds } from '../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import type { JoinedWorker } from '../../../src/compose/joined-worker.ts'
import type { Fleet } from '../../../src/domain/engine/fleet/fleet.ts'
import { call } from '../clients/call.ts'
import { LONG_MS, PATIENT_BOUNDS } from '../engines/comfy-test-bounds.ts'
import { type FakeComfy, startFakeComfy } from '../engines/fake-comfyui/fake-comfyui.ts'
import type { FakeOptions } from '../engines/fake-comfyui/fake-options.ts'
import { waitUntil } from '../wait-until.ts'
import { ADMIN_TOKEN, joinTestWorker } from './join-worker.ts'
import { startTestApp, type TestApp } from './start-app.ts'

export interface FleetApp extends AsyncDisposable {
  readonly url: string
  readonly service: TestApp
  /** Of the process that runs the jobs. */
  readonly fleet: Fleet
  /** null: the service runs the jobs itself. */
  readonly worker: JoinedWorker | null
  readonly fakes: readonly FakeComfy[]
  submit(workflow: object): Promise<string>
  /** Polls until the job fulfils the condition; rejects when the job ends without that. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  until(jobId: string, ...statuses: readonly string[]): Promise<any>
}

interface FleetServer extends FakeOptions {
  /** Of its engine alone, beside those of all. */
  readonly bounds?: Partial<ComfyBounds>
}

export interface FleetAppOptions {
  readonly servers: readonly FleetServer[]
  readonly settings?: Readonly<Record<string, string>>
  readonly bounds?: Partial<ComfyBounds>
  /** How long the service waits for a run to stop after a cancel. */
  readonly cancelGraceMs?: number
  readonly concurrency?: number
  readonly adminToken?: string
  /** With what is stored there already; removed with the service. */
  readonly dataDir?: string
  /** The first time in quarantine; left out: the service's own. */
  readonly quarantineMs?: number
  /** The engines belong to a worker that joined the service over HTTP. */
  readonly isJoined?: boolean
}

const TERMINAL = ['succeeded', 'failed', 'canceled', 'expired']

export async function startFleetApp({
  servers,
  settings,
  bounds,
  cancelGraceMs = LONG_MS,
  concurrency,
  adminToken,
  dataDir,
  quarantineMs,
  isJoined = false,
}: FleetAppOptions): Promise<FleetApp> {
  await using opening = new AsyncDisposableStack()
  const fakes: FakeComfy[] = []
  for (const options of servers) fakes.push(opening.use(await startFakeComfy(options)))
  const engines = await Promise.all(
    fakes.map(({ url }, index) =>
      openComfyEngine({
        id: `gpu${index + 1}`,
        server: { kind: 'remote', url },
        bounds: { ...PATIENT_BOUNDS, ...bounds, ...servers[index].bounds },
        ...(concurrency === undefined ? {} : { concurrency }),
        log: silentLog,
        clock: systemClock,
      }),
    ),
  )
  await Promise.all(engines.map((engine) => engine.untilReady()))
  const patch = { jobs: { cancelGraceMs } }
  const flags = {
    workers: String(engines.length * (concurrency ?? 1)),
    ...(adminToken === undefined ? {} : { adminToken }),
    ...settings,
  }
  const service = opening.use(
    await startTestApp(
      isJoined
        ? { patch, overrides: { engines: [] }, settings: { adminToken: ADMIN_TOKEN, joins: 'on', ...flags } }
        : { patch, overrides: { engines, quarantineMs }, settings: flags, dataDir },
    ),
  )
  const worker = isJoined
    ? opening.use(await joinTestWorker(service, { patch, overrides: { engines, quarantineMs }, settings: flags }))
    : null
  const fleet = worker?.fleet ?? service.app.fleet
  const opened = opening.move()
  return {
    url: service.url,
    service,
    worker,
    fleet,
    fakes,
    async submit(workflow) {
      const answer = await call(service.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
      if (answer.status !== 201) throw new Error(`refused: ${answer.text}`)
      return answer.json.id
    },
    until: (jobId, ...statuses) => untilJob(service.url, jobId, statuses),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

async function untilJob(url: string, jobId: string, statuses: readonly string[]) {
  let last: unknown
  const look = async () => {
    const { json: job } = await call(url, `/api/v2/jobs/${jobId}`)
    last = job
    if (statuses.includes(job.status)) return job
    if (TERMINAL.includes(job.status)) throw new Error(`the job ended ${job.status}: ${JSON.stringify(job.error)}`)
    return null
  }
  return waitUntil(look, () => `${statuses.join(' or ')}, and not ${JSON.stringify(last)}`)
}

/** A picture of one colour, saved. */
export function pictureGraph(color: number, checkpoint?: string): Record<string, object> {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
    ...(checkpoint === undefined
      ? {}
      : { '3': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: checkpoint } } }),
  }
}
