/** What the listener knows of a surface: how to register it, what it answers before the framework, and how it ends. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Scope } from '../../domain/accounts/caller.ts'

/** A route that is answered in front of the framework. */
export interface HotRoute {
  /** What its addresses begin with. */
  readonly prefix: string
  /** True when it took the request; false leaves the request, untouched, to the framework. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

export interface ErrorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Turns whatever was thrown into an answer in one surface's envelope. */
export type AnswerError = (error: unknown, requestId: string) => ErrorAnswer

/** A request to leave HTTP for a WebSocket. */
export interface Upgrade {
  readonly request: IncomingMessage
  readonly socket: Socket
  /** What came behind the head of the request. */
  readonly head: Buffer
}

export interface UpgradeRoute {
  /** Checked by `open`; a server with an upgrade that declares none does not start. */
  readonly right: Scope | 'worker'
  /** `path` is without query. */
  takes(path: string): boolean
  /** Throws refusals until the handshake is sent; from then on the connection is its own. */
  open(upgrade: Upgrade): Promise<void>
  readonly answerError: AnswerError
}

export interface SurfaceGauge {
  readonly name: string
  readonly help: string
  read(): number
}

/** A contract as the reference pages show it. */
export interface Reference {
  /** Of the page: `/docs` or below it. */
  readonly path: string
  readonly title: string
  /** An OpenAPI document with its examples. */
  document(): object
  /** A first thing to try: a path of the contract. */
  readonly examplePath: string
  /** The module of the client for it, as programs import it; left out: it has none. */
  readonly client?: string
  /** Its paths begin at the root of the host, whatever the mount; left out: they are mounted. */
  readonly isAtRoot?: boolean
}

export interface Surface {
  readonly name: string
  /** Runs in an encapsulated context: hooks and the error envelope stay inside. */
  register(app: FastifyInstance): void
  readonly hotRoute?: HotRoute
  /** Methods that exist under this path (without query), for the `Allow` header; empty when none does. */
  allowedMethods(path: string): readonly string[]
  /** WebSockets, where the surface speaks them. */
  readonly upgrades?: UpgradeRoute
  /** Its contract, for the reference pages. */
  readonly reference?: Reference
  /** Where the root of the service leads; null or left out: not here. */
  readonly home?: () => string | null
  /** How many event streams of it are open. */
  readonly openStreams?: () => number
  /** What an operator can watch of it. */
  readonly gauges?: readonly SurfaceGauge[]
  /** The envelope of refusals under this path that no route gives: an address that cannot be read, a method that it lacks. */
  readonly answerErrorFor?: (path: string) => AnswerError | null
  /** Ends what the surface holds open, such as event streams. Harmless when called twice. */
  drain?(): void
}

/** Registers routes below a prefix, in a context of their own: hooks that `register` adds stay inside. */
export function mount(app: FastifyInstance, prefix: string, register: (mounted: FastifyInstance) => void): void {
  app.register(
    (mounted, _options, done) => {
      register(mounted)
      done()
    },
    { prefix },
  )
}
