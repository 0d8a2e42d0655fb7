/**
 * The WebSocket of this surface: who may open one, what it hears first, and how it ends. The client id that a client brings
 * is told back to it, and names the client whose run it may find in the middle. Sockets of one client id are one client.
 */

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WebSocketServer } from 'ws'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { type Caller, mustHaveScope } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { EventBus } from '../../../domain/events/event-bus.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { mustNameNoDeployment } from '../../kit/deployment-address.ts'
import type { Gate } from '../../kit/gate.ts'
import type { HeldPlaces } from '../../kit/held-places.ts'
import type { AnswerError, Upgrade, UpgradeRoute } from '../../kit/surface.ts'
import type { Ticker } from '../../kit/ticker.ts'
import { refuseUpgrade } from '../../kit/upgrades.ts'
import type { Audiences } from '../audience.ts'
import { AccountChannel } from './account-channel.ts'
import { CONNECTION_LIMITS, type ConnectionEvents, type ConnectionLimits, SocketConnection } from './connection.ts'
import { encodeText } from './frames.ts'
import { followJobs } from './job-notices.ts'
import { featureFlagsMessage, statusMessage, stillExecutingMessage } from './messages.ts'
import { createRunStories } from './run-story.ts'

export interface SocketsOptions {
  readonly gate: Gate
  readonly answerError: AnswerError
  readonly bus: Pick<EventBus<EngineEvent>, 'onChanged' | 'onLive'>
  readonly clock: Clock
  readonly ticker: Ticker
  readonly log: Log
  /** Jobs of an account that are running or waiting. */
  readonly countLive: (accountId: string) => Promise<number>
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  readonly audiences: Audiences
  /** Whether a run is told to the client that submitted it only, where one was named; otherwise to the whole account. */
  readonly isPerClient: boolean
  /** What this server can do, as `GET /features` tells it. */
  readonly features: () => object
  /** name, value, name, value: what every answer of the surface carries. */
  readonly answerHeaders: readonly string[]
  readonly places: HeldPlaces
  readonly limits?: Partial<ConnectionLimits>
}

export interface SocketStats {
  readonly open: number
  readonly previewsDropped: number
  readonly readersGivenUp: number
}

export interface Sockets {
  readonly upgrades: UpgradeRoute
  stats(): SocketStats
  /** Closes every socket; new ones are refused. */
  close(): void
}

/** Who asks for a socket, and where it would listen. */
interface Guest {
  readonly caller: Caller
  readonly channel: AccountChannel
}

// Clients say one short sentence about themselves; whatever is longer is not for us.
const MAX_MESSAGE_BYTES = 65_536
const MAX_CLIENT_ID_LENGTH = 256
/** One client gives a socket up after 10 s without a message, and pings do not count to it. */
const STATUS_EVERY_MS = 5_000
const PING_EVERY_MS = 5_000
const WELCOME_EVERY_MS = 1_000

export function createSockets(options: SocketsOptions): Sockets {
  const { gate, answerError, bus, clock, ticker, log, countLive, findJob } = options
  const channels = new Map<string, AccountChannel>()
  const connections = new Map<SocketConnection, Caller>()
  const limits = { ...CONNECTION_LIMITS, ...options.limits }
  const stories = createRunStories({ clock })
  const counts = { previewsDropped: 0, readersGivenUp: 0 }
  let stopTicking: (() => void) | null = null
  let isClosed = false

  const handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    autoPong: false,
  })
  handshakes.on('headers', (headers) => {
    const { answerHeaders } = options
    for (let at = 0; at < answerHeaders.length; at += 2) headers.push(`${answerHeaders[at]}: ${answerHeaders[at + 1]}`)
  })
  handshakes.on('wsClientError', (error, socket, request) => {
    const refusal = new ServiceError('invalid_request', `this is no WebSocket handshake: ${error.message}`)
    refuseUpgrade({ request, socket: socket as Upgrade['socket'] }, gate, { error: refusal, answerError })
  })
  const { audiences, isPerClient, places } = options
  const channelOf = (accountId: string) => channels.get(accountId)
  const stopFollowing = followJobs({ bus, stories, findJob, log, channelOf, audiences, isPerClient })

  function hold(accountId: string): AccountChannel {
    const channel = channels.get(accountId) ?? new AccountChannel({ accountId, countLive })
    places.take(accountId)
    channels.set(accountId, channel)
    channel.holders++
    return channel
  }

  function release(channel: AccountChannel): void {
    channel.holders--
    places.giveBack(channel.accountId)
    if (channel.holders === 0) channels.delete(channel.accountId)
  }

  async function open(upgrade: Upgrade): Promise<void> {
    refuseWhenClosed()
    mustNameNoDeployment(gate.place(upgrade.request))
    const caller = await gate.authenticate(upgrade.request, 'socket')
    mustHaveScope(caller, 'jobs:read')
    const channel = hold(caller.accountId)
    let isJoined = false
    try {
      await channel.ready()
      // So that whose runs are under way is known when the newcomer is told of its own.
      for (const { jobId } of stories.ofAccount(caller.accountId)) await audiences.find(caller.accountId, jobId)
      refuseWhenClosed()
      isJoined = shakeHands(upgrade, { caller, channel })
    } finally {
      // Whoever has joined gives the place back when the socket closes.
      if (!isJoined) release(channel)
    }
  }

  /** False when it came to nothing: a peer that is gone, or a handshake that was no handshake and has been answered. */
  function shakeHands({ request, socket, head }: Upgrade, { caller, channel }: Guest): boolean {
    let isJoined = false
    // The library answers within this call; it has nothing to wait for.
    handshakes.handleUpgrade(request, socket, head, (ws) => {
      const given = readClientId(request)
      const clientId = given === '' ? randomBytes(16).toString('hex') : given
      const connection = new SocketConnection({
        ws,
        socket,
        clientId,
        limits,
        now: ticker.now,
        events: eventsOf(channel),
      })
      connections.set(connection, caller)
      stopTicking ??= startTicking()
      channel.join(connection, encodeText(statusMessage(channel.live, clientId)))
      tellRunning(connection, channel)
      isJoined = true
    })
    return isJoined
  }

  function eventsOf(channel: AccountChannel): ConnectionEvents {
    return {
      onMessage: (connection, text) => hear(connection, channel, text),
      onPreviewsDropped(count) {
        counts.previewsDropped += count
      },
      onGivenUp() {
        counts.readersGivenUp++
      },
      onClosed(connection) {
        channel.leave(connection)
        release(channel)
        connections.delete(connection)
        if (connections.size > 0) return
        stopTicking?.()
        stopTicking = null
      },
    }
  }

  /** Who comes back in the middle of a run of its own is shown where it is. */
  function tellRunning(connection: SocketConnection, channel: AccountChannel): void {
    for (const run of stories.ofAccount(channel.accountId)) {
      if (run.lastNode === null || audiences.find(run.accountId, run.jobId) !== connection.clientId) continue
      channel.tell(connection, encodeText(stillExecutingMessage(run.lastNode)))
    }
  }

  /** Only the first message counts, and only as feature flags; whatever is no JSON is as if it had not been said. */
  function hear(connection: SocketConnection, channel: AccountChannel, text: string): void {
    if (connection.hasSpoken) return
    const message = readMessage(text)
    if (message === null) return
    connection.hasSpoken = true
    if (message.type !== 'feature_flags') return
    // What was said until now was said in the old dialect.
    channel.flush()
    connection.dialect = supportsMetadata(message.data) ? 'metadata' : 'plain'
    channel.tell(connection, encodeText(featureFlagsMessage(options.features())))
  }

  function startTicking(): () => void {
    const stops = [
      ticker.every(STATUS_EVERY_MS, repeatStatus),
      ticker.every(PING_EVERY_MS, checkAll),
      ticker.every(WELCOME_EVERY_MS, dismissUnwelcome),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  function repeatStatus(): void {
    for (const channel of channels.values()) {
      if (!channel.hasReaders || channel.live === 0) continue
      channel.recount().then(
        () => channel.say((batch) => batch.addText(statusMessage(channel.live))),
        (error) => log.warn({ err: error }, 'the jobs of an account could not be counted'),
      )
    }
  }

  function checkAll(): void {
    for (const connection of connections.keys()) connection.check()
  }

  /** Whoever would not be let in any more hears nothing more. */
  function dismissUnwelcome(): void {
    for (const [connection, caller] of connections) if (!gate.isWelcome(caller)) connection.dismiss()
  }

  function refuseWhenClosed(): void {
    if (isClosed) throw new ServiceError('shutting_down', 'the service is shutting down; connect again in a moment')
  }

  return {
    upgrades: { open, answerError, takes: createTakes(gate.mountPrefix) },
    stats: () => ({ open: connections.size, ...counts }),
    close() {
      isClosed = true
      stopFollowing()
      for (const channel of channels.values()) channel.flush()
      for (const connection of connections.keys()) connection.goAway()
    },
  }
}

function createTakes(mountPrefix: string): (path: string) => boolean {
  const paths = new Set([`${mountPrefix}/ws`, `${mountPrefix}/api/ws`])
  return (path) => paths.has(path)
}

/** '' when the client brought none. */
function readClientId(request: IncomingMessage): string {
  const query = (request.url ?? '').split('?').slice(1).join('?')
  return (new URLSearchParams(query).get('clientId') ?? '').slice(0, MAX_CLIENT_ID_LENGTH).toWellFormed()
}

/** null for what is no JSON. */
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
