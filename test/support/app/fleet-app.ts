/** The whole service with fake ComfyUI servers, and with short timeouts, so that hangs end soon. */

import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import type { ComfyBounds } from '../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import { call } from '../clients/call.ts'
import { type FakeComfy, type FakeOptions, startFakeComfy } from '../engines/fake-comfyui/fake-comfyui.ts'
import { startTestApp, type TestApp } from './start-app.ts'

export const SHORT_BOUNDS: Partial<ComfyBounds> = {
  callMs: 2_500,
  objectInfoMs: 5_000,
  submitMs: 3_000,
  unreachableMs: 4_000,
  refusedMs: 600,
  vanishedMs: 500,
  pollFirstMs: 10,
  pollMaxMs: 60,
  socketSilenceMs: 300,
  stallMs: 2_000,
  idleMs: 10_000,
  queueStillMs: 10_000,
  socketWaitMs: 300,
  reconnectFirstMs: 10,
  reconnectMaxMs: 100,
  sameIdPauseMs: 200,
  stopGraceMs: 1_500,
  interruptEveryMs: 40,
  fileFirstByteMs: 1_000,
  fileIdleMs: 1_000,
  filePaceWindowMs: 200,
  fileTries: 3,
  fileRetryMs: 10,
  probeEveryMs: 200,
  probeMaxMs: 300,
  catalogMinMs: 0,
  freeSettleMs: 0,
}

export const CANCEL_GRACE_MS = 1_000

export interface FleetApp extends AsyncDisposable {
  readonly url: string
  readonly service: TestApp
  readonly fakes: readonly FakeComfy[]
  submit(workflow: object): Promise<string>
  /** Polls until the job fulfils the condition; rejects when the job ends without that. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  until(jobId: string, ...statuses: readonly string[]): Promise<any>
}

export interface FleetAppOptions {
  readonly servers: readonly FakeOptions[]
  readonly settings?: Readonly<Record<string, string>>
  readonly bounds?: Partial<ComfyBounds>
  readonly concurrency?: number
  readonly adminToken?: string
}

const TERMINAL = ['succeeded', 'failed', 'canceled', 'expired']

export async function startFleetApp({
  servers,
  settings,
  bounds,
  concurrency,
  adminToken,
}: FleetAppOptions): Promise<FleetApp> {
  await using opening = new AsyncDisposableStack()
  const fakes: FakeComfy[] = []
  for (const options of servers) fakes.push(opening.use(await startFakeComfy(options)))
  const engines = await Promise.all(
    fakes.map(({ url }, index) =>
      openComfyEngine({
        id: `gpu${index + 1}`,
        server: { kind: 'remote', url },
        bounds: { ...SHORT_BOUNDS, ...bounds },
        ...(concurrency === undefined ? {} : { concurrency }),
        log: silentLog,
        clock: systemClock,
      }),
    ),
  )
  await Promise.all(engines.map((engine) => engine.untilReady(AbortSignal.timeout(10_000))))
  const flags = {
    cancelGrace: `${CANCEL_GRACE_MS}ms`,
    workers: String(engines.length * (concurrency ?? 1)),
    ...(adminToken === undefined ? {} : { adminToken }),
    ...settings,
  }
  const service = opening.use(await startTestApp({ overrides: { engines }, settings: flags }))
  const opened = opening.move()
  return {
    url: service.url,
    service,
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
  for (;;) {
    const { json: job } = await call(url, `/api/v2/jobs/${jobId}`)
    if (statuses.includes(job.status)) return job
    if (TERMINAL.includes(job.status)) throw new Error(`the job ended ${job.status}: ${JSON.stringify(job.error)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
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
