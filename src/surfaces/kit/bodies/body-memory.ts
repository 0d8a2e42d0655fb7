/**
 * One budget for all request bodies that are held in memory, per caller and in total. Only bytes that have arrived count: a
 * request that declares a large body and sends nothing takes none of it. Each request carries its claim, so that whoever reads
 * its body finds it; what the body took is given back when the answer has gone out, or earlier by whoever is done with it.
 * Uploads that stream to disk do not count.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createTurns, type Turns } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'

export interface BodyMemoryOptions {
  readonly totalBytes: number
  readonly perCallerBytes: number
  /** Where large bodies are read into values, a slice at a time. */
  readonly turns: Turns
  /** Called for every chunk of a body once it was consumed or dropped. */
  readonly onTransferred?: (bytes: number) => void
}

export interface BodyMemory {
  /** To be called for every request before anything reads its body. */
  admit(request: IncomingMessage, response: ServerResponse): void
  /** For tests and metrics. */
  heldBytes(): number
}

/** What one request may take and has taken. */
export interface BodyClaim {
  readonly turns: Turns
  /** To be called for every chunk once it was consumed or dropped, so that its buffer may be freed soon. */
  readonly onTransferred: (bytes: number) => void
  /** Whose budget the bytes count against. Callers that have not shown who they are share one. */
  caller: string
  /** Throws `overloaded` when so many bytes do not fit now; takes nothing. */
  mustFit(bytes: number): void
  /** Throws `overloaded`, and then takes nothing. */
  take(bytes: number): void
  /** For bytes that outlive the answer: returns the function that gives them back. */
  hold(): () => void
  /** Gives everything back, unless it is held. */
  release(): void
}

const CLAIM = Symbol('body claim')
type Claiming = IncomingMessage & { [CLAIM]?: BodyClaim }

const UNKNOWN_CALLER = ''
// A body of the largest size arrives and is dealt with in about this time.
const RETRY_AFTER_SECONDS = 5

export function createBodyMemory({
  totalBytes,
  perCallerBytes,
  turns,
  onTransferred = ignore,
}: BodyMemoryOptions): BodyMemory {
  const byCaller = new Map<string, number>()
  let heldBytes = 0

  function mustFit(caller: string, bytes: number): void {
    const own = byCaller.get(caller) ?? 0
    if (own + bytes > perCallerBytes) throw overloaded('you are sending more at once than is held for one caller')
    if (heldBytes + bytes > totalBytes) throw overloaded('more is being sent at once than the service holds')
  }

  function open(): BodyClaim {
    let takenBytes = 0
    let takenAs = UNKNOWN_CALLER
    let isHeld = false
    const giveBack = () => {
      if (takenBytes === 0) return
      const left = (byCaller.get(takenAs) ?? 0) - takenBytes
      if (left > 0) byCaller.set(takenAs, left)
      else byCaller.delete(takenAs)
      heldBytes -= takenBytes
      takenBytes = 0
    }
    return {
      turns,
      onTransferred,
      caller: UNKNOWN_CALLER,
      mustFit(bytes) {
        mustFit(this.caller, bytes)
      },
      take(bytes) {
        // Bytes are given back to the budget that they were taken from.
        if (takenBytes === 0) takenAs = this.caller
        mustFit(takenAs, bytes)
        takenBytes += bytes
        heldBytes += bytes
        byCaller.set(takenAs, (byCaller.get(takenAs) ?? 0) + bytes)
      },
      hold() {
        isHeld = true
        return giveBack
      },
      release() {
        if (!isHeld) giveBack()
      },
    }
  }

  return {
    admit(request: Claiming, response) {
      // Most requests have no body and pay nothing.
      if (request.method === 'GET' || request.method === 'HEAD') return
      const claim = open()
      request[CLAIM] = claim
      response.once('close', () => claim.release())
    },
    heldBytes: () => heldBytes,
  }
}

function ignore(): void {}

function overloaded(reason: string): ServiceError {
  return new ServiceError('overloaded', `${reason}; send the request again in a moment`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}

/** For requests that were not admitted: nothing is counted. */
const UNBOUNDED: BodyClaim = {
  turns: createTurns(),
  onTransferred: ignore,
  caller: UNKNOWN_CALLER,
  mustFit() {},
  take() {},
  hold: () => () => {},
  release() {},
}

export function claimOf(request: IncomingMessage): BodyClaim {
  return (request as Claiming)[CLAIM] ?? UNBOUNDED
}

/** To be called once it is known who sends the request. */
export function nameCaller(request: IncomingMessage, caller: string): void {
  const claim = (request as Claiming)[CLAIM]
  if (claim !== undefined) claim.caller = caller
}
