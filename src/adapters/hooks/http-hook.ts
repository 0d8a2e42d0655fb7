/**
 * A question to a hook of the operator as one signed POST. The address stands in the operator's own configuration and may lie anywhere;
 * a redirect is not followed, and an answer is read only up to its bound.
 */

import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { keepNumber } from '../../../lib/json/lossless-json.ts'
import { readJsonSteps } from '../../../lib/json/read-json-steps.ts'
import { ExchangeError, loadUndici, openOutboundClient } from '../../../lib/outbound/exchange.ts'
import { createGuardedConnector, privateNetwork, unwrapBlocked } from '../../../lib/outbound/network.ts'
import { signMessage } from '../../../lib/standard-webhooks.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import { type CallHook, HookFault } from '../../domain/moderation/ask-hook.ts'

interface HttpHookOptions {
  readonly url: string
  /** The message is signed with each of them. */
  readonly secrets: readonly Uint8Array[]
  readonly atOnce: number
  readonly maxAnswerBytes: number
  readonly version: string
  /** A large answer is read in slices. */
  readonly turns: Turns
}

interface HttpHook extends AsyncDisposable {
  readonly call: CallHook
}

const LIMITS = { maxDepth: 100, maxValues: 200_000, maxMembers: 20_000, maxLongDigits: 100_000 }

export function openHttpHook({ url, secrets, atOnce, maxAnswerBytes, version, turns }: HttpHookOptions): HttpHook {
  const { origin, pathname, search } = new URL(url)
  // The first question has no more time than the others.
  loadUndici()
  const client = openOutboundClient({ connectionsPerHost: atOnce, connect: createGuardedConnector(privateNetwork) })
  return {
    async call({ id, at, body }, { timeoutMs, signal }) {
      const headers = {
        ...{ 'content-type': 'application/json', accept: 'application/json' },
        'user-agent': `atelier/${version}`,
        ...signMessage(secrets, { id, at, body }),
      }
      const request = { origin, path: `${pathname}${search}`, method: 'POST' as const, headers, body }
      const limits = { totalTimeMs: timeoutMs, maxBytes: maxAnswerBytes, signal }
      const answer = await client.send(request, limits).catch(unwrapBlocked).catch(toFault)
      if (answer.status < 200 || answer.status > 299) throw new HookFault(`it answered ${answer.status}`)
      try {
        const bytes = answer.body as Buffer
        return (await turns.run(readJsonSteps(bytes, { readNumber: keepNumber, limits: LIMITS }))) as JsonValue
      } catch (error) {
        throw new HookFault('its answer is not JSON, or not within bounds', { cause: error })
      }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

function toFault(error: unknown): never {
  const isLost = error instanceof ExchangeError && (error.fault === 'unreachable' || error.fault === 'broken')
  throw new HookFault(error instanceof Error ? error.message : 'it cannot be asked', { mayPass: isLost, cause: error })
}
