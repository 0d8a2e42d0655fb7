/** How a message is brought to its endpoint: signed, within ten seconds, to an address that may be called, and nowhere else. */
import type { AttemptOutcome, Endpoint, Message } from './webhook.ts'

interface SendRequest {
  readonly message: Message
  /** null: in the words of the service. */
  readonly body: string | null
  readonly endpoint: Pick<Endpoint, 'url' | 'kind'>
  /** The message is signed with each of them. */
  readonly secrets: readonly Uint8Array[]
  readonly at: Date
  readonly signal: AbortSignal
}

export interface SendAnswer {
  readonly outcome: AttemptOutcome
  readonly status: number | null
  readonly response: string | null
}

export interface WebhookSender {
  /** Throws only when the signal is aborted; every other failure is an outcome. */
  send(request: SendRequest): Promise<SendAnswer>
  /** Why nothing may be sent to this address; null: it may. */
  refusalOf(url: string): string | null
}
