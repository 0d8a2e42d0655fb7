/** Keys that accounts bring: whether a text can be one, and whether the provider takes it, asked by a request that costs nothing. */
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import type { KeyVerdict, Provider } from '../../../../domain/models/provider.ts'
import type { DeclarativeDeps, ProviderContext } from '../provider-context.ts'
import { createCallApi } from './call-api.ts'

const MAX_BYTES = 4 * 1024 * 1024

export function createOwnKeys(context: ProviderContext, deps: DeclarativeDeps): NonNullable<Provider['ownKeys']> {
  const { provider, auth, key_check: check } = context.rules
  const callApi = createCallApi(context, deps)
  const patterns = auth.map(({ key_matches: pattern }) => (pattern === undefined ? null : new RegExp(pattern, 'u')))
  return {
    problemOf: (key) =>
      patterns.some((pattern) => pattern === null || pattern.test(key))
        ? null
        : `does not look like a key of ${provider}`,
    test:
      check === undefined
        ? null
        : async (key, { signal, deadline }) => {
            const about = { model: { id: `${provider}/*` }, kind: 'poll', maxBytes: MAX_BYTES } as const
            try {
              const request = { method: 'GET', target: check.path, headers: {}, body: null } as const
              const { status } = await callApi(request, key, { ...about, signal, deadline })
              return { outcome: toVerdict(status), upstreamStatus: status }
            } catch (error) {
              if (error instanceof ExchangeError) return { outcome: 'unclear', upstreamStatus: error.status }
              throw error
            }
          },
  }
}

const REFUSED = [401, 403]

function toVerdict(status: number): KeyVerdict['outcome'] {
  if (status < 300) return 'works'
  return REFUSED.includes(status) ? 'refused' : 'unclear'
}
