/**
 * One budget for all bodies that are held in memory, per caller and in total. Only bytes that have arrived count: whoever
 * announces much and sends nothing takes no room. A request carries its claim on the room, so that whoever reads its body finds
 * it; what the body takes is given back when the answer has gone out, or earlier by whoever is done with it. Uploads that
 * stream to where they belong are not bodies in this sense.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createTurns, type Turns } from '../../../../lib/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'

export interface BodyMemoryOptions {
  readonly totalBytes: number
  readonly perCallerBytes: number
  /** Where large bodies are read into values, a slice at a time. */
  readonly turns: Turns
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
  /** Whoever shows who it is takes room of its own; until then all callers share one. */
  caller: string
  /** Throws `overloaded` when so much does not fit, now; takes nothing. */
  mustFit(bytes: number): void
  /** Throws `overloaded`, and then takes nothing. */
  take(bytes: number): void
  /** The bytes outlive the answer; whoever holds them says when they are gone. */
  hold(): () => void
  /** Gives back everything. */
  release(): void
}

const CLAIM = Symbol('body room')
type Claiming = IncomingMessage & { [CLAIM]?: BodyClaim }

const NOBODY = ''
// A body of the largest size arrives and is dealt with in about this time.
const RETRY_AFTER_SECONDS = 5

export function createBodyMemory({ totalBytes, perCallerBytes, turns }: BodyMemoryOptions): BodyMemory {
  const byCaller = new Map<string, number>()
  let heldBytes = 0

  function mustFit(caller: string, bytes: number): void {
    const own = byCaller.get(caller) ?? 0
    if (own + bytes > perCallerBytes) throw overloaded('you are sending more at once than is held for one caller')
    if (heldBytes + bytes > totalBytes) throw overloaded('more is being sent at once than the service holds')
  }

  function open(): BodyClaim {
    let takenBytes = 0
    let takenAs = NOBODY
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
      caller: NOBODY,
      mustFit(bytes) {
        mustFit(this.caller, bytes)
      },
      take(bytes) {
        // Room is given back to whom it was taken from.
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

function overloaded(reason: string): ServiceError {
  return new ServiceError('overloaded', `${reason}; send the request again in a moment`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}

/** For requests that no server of ours has admitted: nothing is counted. */
const UNBOUNDED: BodyClaim = {
  turns: createTurns(),
  caller: NOBODY,
  mustFit() {},
  take() {},
  hold: () => () => {},
  release() {},
}

export function claimOf(request: IncomingMessage): BodyClaim {
  return (request as Claiming)[CLAIM] ?? UNBOUNDED
}

/** Once it is known who sends the request. */
export function nameCaller(request: IncomingMessage, caller: string): void {
  const claim = (request as Claiming)[CLAIM]
  if (claim !== undefined) claim.caller = caller
}
