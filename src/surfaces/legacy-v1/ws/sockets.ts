/**
 * The WebSocket of this surface: who may open one, what it is sent first, and how it ends. A client names itself by a client
 * id, which its first message tells back. Sockets with the same client id are one client; a client that connects in the middle
 * of its own run is told so.
 */

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WebSocketServer } from 'ws'
import type { Clock, Ticker } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { type Caller, mustHaveScope } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { EventBus } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { AccountConnections } from '../../kit/connections/account-connections.ts'
import { refuseUpgrade } from '../../kit/connections/raw-connections.ts'
import { mustNameNoDeployment } from '../../kit/guards/addresses.ts'
import type { Gate } from '../../kit/guards/gate.ts'
import { lenientQueryOf } from '../../kit/request.ts'
import type { AnswerError, Upgrade, UpgradeRoute } from '../../kit/surface.ts'
import { AccountChannel } from './account-channel.ts'
import type { JobClients } from './client-news.ts'
import { CONNECTION_LIMITS, type ConnectionEvents, type ConnectionLimits, SocketConnection } from './connection.ts'
import { FollowedJobs } from './follow-jobs.ts'
import { encodeText } from './frames.ts'
import { createLogNews, type LogReaders } from './log-news.ts'
import {
  createRunMessages,
  featureFlagsMessage,
  type RunMessages,
  statusMessage,
  stillExecutingMessage,
} from './run-messages.ts'

export interface SocketsOptions {
  readonly gate: Gate
  readonly answerError: AnswerError
  readonly bus: Pick<EventBus<LiveEvent>, 'hasOthers' | 'onChanged' | 'onLive' | 'onGap'>
  readonly clock: Clock
  readonly ticker: Ticker
  readonly log: Log
  /** Jobs of an account that are running and waiting; null: there is no such account yet. */
  readonly countJobs: ConstructorParameters<typeof AccountChannel>[0]['countJobs']
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  /** Ids of jobs that workers hold, wherever they are. */
  readonly listRunning: (accountId: string) => Promise<readonly string[]>
  /** The newest jobs of the account, whatever their state. */
  readonly listNewest: (accountId: string) => Promise<readonly Pick<Job, 'id' | 'createdAt'>[]>
  readonly jobClients: JobClients
  /** The events of a run are sent only to the client that submitted it, where one was named; otherwise to the whole account. */
  readonly isPerClient: boolean
  /** A client gets the messages of its runs one run after the other. */
  readonly isOneAtATime: boolean
  readonly logReaders: LogReaders
  /** What this server can do, as in `GET /features`. */
  readonly features: () => object
  /** name, value, name, value: what every answer of the surface carries. */
  readonly answerHeaders: readonly string[]
  readonly accountConnections: AccountConnections
  readonly limits?: Partial<ConnectionLimits>
}

interface SocketStats {
  readonly open: number
  readonly previewsDropped: number
  readonly readersGivenUp: number
}

/** Who asks for a socket, and the channel that it would join. */
interface Newcomer {
  readonly caller: Caller
  readonly channel: AccountChannel
}

// Clients send one short message about themselves.
const MAX_MESSAGE_BYTES = 65_536
const MAX_CLIENT_ID_LENGTH = 256
const RIGHT = 'jobs:read'
/** One client gives a socket up after 10 s without a message, and does not count pings. */
const STATUS_EVERY_MS = 5_000
const PING_EVERY_MS = 5_000
const CREDENTIALS_EVERY_MS = 1_000

export class Sockets {
  readonly upgrades: UpgradeRoute
  readonly #deps: SocketsOptions
  readonly #channels = new Map<string, AccountChannel>()
  readonly #connections = new Map<SocketConnection, Caller>()
  readonly #limits: ConnectionLimits
  readonly #runs: RunMessages
  readonly #counts = { previewsDropped: 0, readersGivenUp: 0 }
  #stopTicking: (() => void) | null = null
  #isClosed = false
  readonly #handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    autoPong: false,
  })
  readonly #stopListening: () => void
  readonly #logNews: ReturnType<typeof createLogNews>
  readonly #following: FollowedJobs

  constructor(deps: SocketsOptions) {
    const { gate, bus, clock, ticker, log, jobClients, findJob, listRunning, listNewest, isPerClient, isOneAtATime } =
      deps
    this.#deps = deps
    this.#limits = { ...CONNECTION_LIMITS, ...deps.limits }
    this.#runs = createRunMessages({ clock })
    this.#handshakes.on('headers', (headers) => {
      const { answerHeaders } = deps
      for (let at = 0; at < answerHeaders.length; at += 2)
        headers.push(`${answerHeaders[at]}: ${answerHeaders[at + 1]}`)
    })
    this.#handshakes.on('wsClientError', (error, socket, request) => {
      const refusal = new ServiceError('invalid_request', `this is no WebSocket handshake: ${error.message}`)
      refuseUpgrade({ request, socket: socket as Upgrade['socket'] }, gate, {
        error: refusal,
        answerError: deps.answerError,
      })
    })
    this.#stopListening = gate.onCredentialsChanged(() => this.#dismissUnwelcome())
    const channelOf = (accountId: string) => this.#channels.get(accountId)
    this.#logNews = createLogNews({ readers: deps.logReaders, channelOf, clock })
    this.#following = new FollowedJobs({
      ...{ clock, ticker, log, jobClients, channelOf, runs: this.#runs },
      ...{ bus, findJob, listRunning, listNewest, isPerClient, isOneAtATime },
      onCaughtUp: (accountId, jobId) => this.#onCaughtUp(accountId, jobId),
      onLog: this.#logNews.note,
    })
    this.upgrades = {
      right: RIGHT,
      open: (upgrade) => this.#open(upgrade),
      answerError: deps.answerError,
      takes: createTakes(gate.mountPrefix),
    }
  }

  stats(): SocketStats {
    return { open: this.#connections.size, ...this.#counts }
  }

  /** A message for every socket of the account. */
  tell(accountId: string, message: string): void {
    this.#channels.get(accountId)?.say((batch) => batch.addText(message))
  }

  /** Closes every socket; new ones are refused. */
  close(): void {
    this.#isClosed = true
    this.#following.stop()
    this.#logNews.stop()
    this.#stopListening()
    for (const channel of this.#channels.values()) channel.flush()
    for (const connection of this.#connections.keys()) connection.goAway()
  }

  async #hold(accountId: string): Promise<AccountChannel> {
    await this.#deps.accountConnections.take(accountId)
    const channel = this.#channels.get(accountId) ?? new AccountChannel({ accountId, countJobs: this.#deps.countJobs })
    this.#channels.set(accountId, channel)
    this.#following.follow(accountId)
    channel.holders++
    return channel
  }

  #release(channel: AccountChannel): void {
    channel.holders--
    this.#deps.accountConnections.giveBack(channel.accountId)
    if (channel.holders > 0) return
    this.#channels.delete(channel.accountId)
    this.#following.unfollow(channel.accountId)
  }

  async #open(upgrade: Upgrade): Promise<void> {
    const { gate, jobClients } = this.#deps
    this.#refuseWhenClosed()
    mustNameNoDeployment(gate.addressOf(upgrade.request))
    const caller = await gate.authenticate(upgrade.request, 'socket')
    mustHaveScope(caller, RIGHT)
    const channel = await this.#hold(caller.accountId)
    let isJoined = false
    try {
      await channel.ready()
      // The clients of running jobs must be known before a new client gets the state of its own runs.
      for (const { jobId } of this.#runs.ofAccount(caller.accountId)) await jobClients.find(caller.accountId, jobId)
      this.#refuseWhenClosed()
      isJoined = this.#completeHandshake(upgrade, { caller, channel })
    } finally {
      // A socket that has joined releases the channel when it closes.
      if (!isJoined) this.#release(channel)
    }
  }

  /** False when no socket was opened: the peer is gone, or its handshake was malformed and has been refused. */
  #completeHandshake({ request, socket, head }: Upgrade, { caller, channel }: Newcomer): boolean {
    let isJoined = false
    // The library calls back within this call.
    this.#handshakes.handleUpgrade(request, socket, head, (ws) => {
      const given = readClientId(request)
      const clientId = given === '' ? randomBytes(16).toString('hex') : given
      const connection = new SocketConnection({
        ws,
        socket,
        clientId,
        limits: this.#limits,
        now: this.#deps.ticker.now,
        events: this.#eventsOf(channel),
      })
      this.#connections.set(connection, caller)
      this.#stopTicking ??= this.#startTicking()
      channel.join(connection, encodeText(statusMessage(channel.live, clientId)))
      this.#tellRunning(connection, channel)
      isJoined = true
    })
    return isJoined
  }

  #eventsOf(channel: AccountChannel): ConnectionEvents {
    return {
      onMessage: (connection, text) => this.#hear(connection, channel, text),
      onPreviewsDropped: (count) => {
        this.#counts.previewsDropped += count
      },
      onGivenUp: () => {
        this.#counts.readersGivenUp++
      },
      onClosed: (connection) => {
        channel.leave(connection)
        this.#release(channel)
        this.#connections.delete(connection)
        if (this.#connections.size > 0) return
        this.#stopTicking?.()
        this.#stopTicking = null
      },
    }
  }

  /** A client that connects in the middle of its own run is told which node is running. */
  #tellRunning(connection: SocketConnection, channel: AccountChannel): void {
    for (const run of this.#runs.ofAccount(channel.accountId)) {
      if (run.lastNode === null || this.#deps.jobClients.find(run.accountId, run.jobId) !== connection.clientId)
        continue
      channel.tell(connection, encodeText(stillExecutingMessage(run.lastNode)))
    }
  }

  /** The same for a run in another process, whose events arrive only after the client has connected. */
  async #onCaughtUp(accountId: string, jobId: string): Promise<void> {
    const clientId = await this.#deps.jobClients.find(accountId, jobId)
    const channel = this.#channels.get(accountId)
    const run = this.#runs.ofAccount(accountId).find((each) => each.jobId === jobId)
    if (channel === undefined || run === undefined || run.lastNode === null) return
    for (const connection of channel.readers)
      if (connection.clientId === clientId) channel.tell(connection, encodeText(stillExecutingMessage(run.lastNode)))
  }

  /** Only the first message that is JSON counts, and only as feature flags. */
  #hear(connection: SocketConnection, channel: AccountChannel, text: string): void {
    if (connection.hasSpoken) return
    const message = readMessage(text)
    if (message === null) return
    connection.hasSpoken = true
    if (message.type !== 'feature_flags') return
    // Messages gathered so far still belong to the old dialect.
    channel.flush()
    connection.dialect = supportsMetadata(message.data) ? 'metadata' : 'plain'
    channel.tell(connection, encodeText(featureFlagsMessage(this.#deps.features())))
  }

  #startTicking(): () => void {
    const { ticker } = this.#deps
    const stops = [
      ticker.every(STATUS_EVERY_MS, () => this.#repeatStatus()),
      ticker.every(PING_EVERY_MS, () => this.#checkAll()),
      ticker.every(CREDENTIALS_EVERY_MS, () => this.#dismissUnwelcome()),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** Counts again, because notices may be lost. If nothing runs and nothing has changed, nothing is sent. */
  #repeatStatus(): void {
    for (const channel of this.#channels.values()) {
      if (!channel.hasReaders || channel.isCounting) continue
      const before = channel.live
      channel.recount().then(
        () => {
          if (before + channel.live > 0) channel.say((batch) => batch.addText(statusMessage(channel.live)))
        },
        (error) => this.#deps.log.warn({ err: error }, 'the jobs of an account could not be counted'),
      )
    }
  }

  #checkAll(): void {
    for (const connection of this.#connections.keys()) connection.check()
  }

  /** Closes the sockets of callers whose credential is no longer valid. */
  #dismissUnwelcome(): void {
    for (const [connection, caller] of this.#connections) if (!this.#deps.gate.isWelcome(caller)) connection.dismiss()
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed)
      throw new ServiceError('shutting_down', 'the service is shutting down; connect again in a moment')
  }
}

function createTakes(mountPrefix: string): (path: string) => boolean {
  const paths = new Set([`${mountPrefix}/ws`, `${mountPrefix}/api/ws`])
  return (path) => paths.has(path)
}

/** '' when the client brought none. */
function readClientId(request: IncomingMessage): string {
  return (lenientQueryOf(request.url ?? '').get('clientId') ?? '').slice(0, MAX_CLIENT_ID_LENGTH).toWellFormed()
}

/** null for a text that is not JSON. */
function readMessage(text: string): { readonly type?: unknown; readonly data?: unknown } | null {
  try {
    const message: unknown = JSON.parse(text)
    return typeof message === 'object' && message !== null ? message : {}
  } catch {
    return null
  }
}

function supportsMetadata(flags: unknown): boolean {
  return Boolean((flags as { supports_preview_metadata?: unknown } | null | undefined)?.supports_preview_metadata)
}
