/** The real listener with the real socket of the legacy surface over a bus that the test speaks on, on a port of its own. */
import { WebSocket } from 'ws'
import type { NodeRef } from '../../../../../engine/graph/run-event.ts'
import { silentLog } from '../../../../../lib/log.ts'
import {
  type Frame,
  isText,
  openSocket,
  type TestSocket,
  type TextFrame,
} from '../../../../../test/support/clients/test-socket.ts'
import { createManualTicker, type ManualTicker } from '../../../../../test/support/manual-ticker.ts'
import { createLocalBus } from '../../../../adapters/bus/local.ts'
import { ServiceError } from '../../../../domain/errors.ts'
import type { EventBus, JobMove } from '../../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../../domain/events/live-event.ts'
import type { Job } from '../../../../domain/jobs/job.ts'
import { createAnswerError } from '../../../jobs-v2/jobs-errors.ts'
import { createAccountConnections } from '../../../kit/connections/account-connections.ts'
import { createGate, type GateOptions } from '../../../kit/guards/gate.ts'
import { DEFAULT_BRANDS } from '../../../kit/request.ts'
import type { Surface } from '../../../kit/surface.ts'
import { openServer, type RunningServer } from '../../../server.ts'
import { createJobClients, type JobClients } from '../../ws/client-news.ts'
import { createLogReaders, type LogReaders } from '../../ws/log-news.ts'
import { Sockets, type SocketsOptions } from '../../ws/sockets.ts'

export const TEST_FEATURES = { supports_preview_metadata: true, max_upload_size: 1024 }

export interface TestSockets extends AsyncDisposable {
  readonly url: string
  readonly server: RunningServer
  readonly sockets: Sockets
  readonly bus: EventBus<LiveEvent>
  readonly ticker: ManualTicker
  /** Jobs that run and jobs that wait, as the store would count them, by account. */
  readonly live: Map<string, number>
  readonly waiting: Map<string, number>
  /** What the store knows of jobs. */
  readonly jobs: Map<string, Job>
  readonly logReaders: LogReaders
  readonly jobClients: JobClients
  /** Clients of jobs, as the store knows them. */
  readonly clients: Map<string, string>
  connect(query?: string, options?: ConnectOptions): Promise<TestSocket>
  move(jobId: string, move: JobMove, accountId?: string): void
  say(jobId: string, event: LiveEvent, accountId?: string): void
}

export interface ConnectOptions {
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface TestSocketsOptions {
  readonly gate?: Partial<GateOptions>
  readonly sockets?: Partial<Pick<SocketsOptions, 'limits' | 'countJobs' | 'isPerClient' | 'isOneAtATime'>>
  readonly maxSocketsPerAccount?: number
  /** One process's end of a bus that several share. */
  readonly bus?: EventBus<LiveEvent>
}

/** A credential is the name of its account; without one it is nobody. */
function authenticate(credential: string | null) {
  if (credential === null) throw new ServiceError('unauthorized', 'a key is required')
  return { accountId: credential, keyId: null, scopes: null, endpoints: null }
}

export async function startSockets(options: TestSocketsOptions = {}): Promise<TestSockets> {
  const gate = createGate({
    brands: DEFAULT_BRANDS,
    bindHost: '127.0.0.1',
    allowedHosts: [],
    corsOrigins: [],
    publicUrl: null,
    mountPrefix: '',
    trustedProxies: [],
    hasCredentials: true,
    authenticate,
    ...options.gate,
  })
  const bus = options.bus ?? createLocalBus<LiveEvent>({ log: silentLog })
  const ticker = createManualTicker()
  const [live, waiting] = [new Map<string, number>(), new Map<string, number>()]
  const [jobs, clients] = [new Map<string, Job>(), new Map<string, string>()]
  const jobClients = createJobClients({ lookUp: async (_accountId, jobId) => clients.get(jobId) ?? null })
  const answerError = createAnswerError(silentLog)
  const logReaders = createLogReaders()
  const sockets = new Sockets({
    gate,
    answerError,
    bus,
    ticker,
    clock: { now: () => new Date(1_700_000_000_000) },
    log: silentLog,
    countJobs: async (accountId) => ({ running: live.get(accountId) ?? 0, queued: waiting.get(accountId) ?? 0 }),
    async findJob(_accountId, jobId) {
      const job = jobs.get(jobId)
      if (job === undefined) throw new ServiceError('not_found', 'there is no job with this id')
      return job
    },
    listRunning: async () => [...jobs.values()].filter(({ status }) => status === 'running').map(({ id }) => id),
    listNewest: async () => [...jobs.values()],
    jobClients,
    isPerClient: false,
    isOneAtATime: false,
    logReaders,
    features: () => TEST_FEATURES,
    answerHeaders: ['Deprecation', 'true'],
    accountConnections: createAccountConnections(options.maxSocketsPerAccount ?? 100),
    ...options.sockets,
  })
  const surface: Surface = {
    name: 'sockets',
    register() {},
    allowedMethods: () => [],
    upgrades: sockets.upgrades,
    drain: () => sockets.close(),
  }
  const server = await openServer({ host: '127.0.0.1', port: 0, gate, answerError, surfaces: [surface] })
  const url = server.url.replace('http', 'ws')
  return {
    url,
    server,
    sockets,
    bus,
    ticker,
    live,
    waiting,
    jobs,
    jobClients,
    logReaders,
    clients,
    connect: (query = 'token=ada', { path = '/ws', headers } = {}) =>
      openSocket(new WebSocket(`${url}${path}?${query}`, { perMessageDeflate: false, headers })),
    move: (jobId, move, accountId = 'ada') => bus.publishChanged({ jobId, accountId, version: 1, move }),
    say: (jobId, event, accountId = 'ada') => bus.publishLive({ jobId, accountId, event }),
    [Symbol.asyncDispose]: server.close,
  }
}

export function toRef(nodeId: string, classType = 'KSampler'): NodeRef {
  return { nodeId, classType, displayNodeId: nodeId, parentNodeId: null }
}

export const JOB = '5c6f54d3-c688-4185-a929-0a18c0b13fd1'

/** Frames in short: the type of a text, the first word of a binary one. */
export function outline(frames: readonly Frame[]): string[] {
  return frames.map((frame) => {
    if ('binary' in frame) return `binary ${frame.binary.readUInt32BE(0)}`
    const { data } = frame
    if (frame.type === 'status') return `status ${queueRemaining(frame)}`
    return frame.type === 'executing' ? `executing ${data['node']}` : frame.type
  })
}

function queueRemaining({ data }: TextFrame): unknown {
  return (data['status'] as { exec_info: { queue_remaining: number } }).exec_info.queue_remaining
}

export const isEnd = (frame: Frame) => isText(frame, 'executing') && frame.data['node'] === null

export const SAMPLER: readonly LiveEvent[] = [
  { type: 'started', nodesTotal: 1 },
  { type: 'cached', nodeIds: [] },
  { type: 'node_started', ...toRef('3') },
  { type: 'node_progress', ...toRef('3'), value: 1, max: 2 },
  { type: 'preview', ...toRef('3'), contentType: 'image/jpeg', bytes: Buffer.from('picture') },
  { type: 'node_text', ...toRef('3'), text: 'hello text' },
  { type: 'node_finished', ...toRef('3') },
  { type: 'log', text: 'done' },
]

export function runSampler(rig: TestSockets, account = 'ada', job = JOB): void {
  rig.move(job, 'queued', account)
  rig.move(job, 'taken', account)
  for (const event of SAMPLER) rig.say(job, event, account)
  rig.move(job, 'ended', account)
  rig.say(job, { type: 'succeeded' }, account)
}
