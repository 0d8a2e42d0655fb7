/** What the listener knows of a surface: how to register it, what it answers before the framework, and how it ends. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/** True when it took the request; false leaves the request, untouched, to the framework. */
export type HotRoute = (request: IncomingMessage, response: ServerResponse) => boolean

export interface ErrorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Turns whatever was thrown into an answer in one surface's envelope. */
export type AnswerError = (error: unknown, requestId: string) => ErrorAnswer

export interface Surface {
  readonly name: string
  /** Runs in an encapsulated context: hooks and the error envelope stay inside. */
  register(app: FastifyInstance): void
  readonly hotRoutes: readonly HotRoute[]
  /** Methods that exist under this path (without query), for the `Allow` header; empty when none does. */
  allowedMethods(path: string): readonly string[]
  /** The envelope of refusals under this path that no route of it can give, such as an address that cannot be read. */
  readonly answerErrorFor?: (path: string) => AnswerError | null
  /** Ends what the surface holds open, such as event streams. Harmless when called twice. */
  drain(): void
}
