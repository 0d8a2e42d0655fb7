/**
 * Passes a question of a caller on: the state of a task, a file that it made. The path is the rules'; what the caller says fills
 * single values in it, encoded. What comes back is the provider's own answer without our key in it; words about our account are
 * for the operator alone.
 */
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import type { Provider, ProviderReply } from '../../../../domain/models/provider.ts'
import { hideKey } from '../answer/provider-refusal.ts'
import type { DeclarativeDeps, ProviderContext } from '../provider-context.ts'
import { compileTemplate, encodeForPath } from '../rules/text-template.ts'
import { createCallApi } from './call-api.ts'
import { readState } from './provider-task.ts'

const ACCOUNT_TROUBLE: ReadonlySet<number> = new Set([401, 402, 403])

export function createAsk(context: ProviderContext, deps: DeclarativeDeps): Required<Provider>['ask'] {
  const callApi = createCallApi(context, deps)
  const { provider } = context.rules
  const settings = Object.entries(context.settings).map(([name, value]) => [`setting.${name}`, value] as const)
  return async function ask({ model, accountId, method, path, values, body }, { signal, deadline }) {
    const access = deps.keyFor(accountId)
    if (access === null) return null
    const target = compileTemplate(path, encodeForPath)({ ...values, ...Object.fromEntries(settings) })
    const headers: Record<string, string> = body === null ? {} : { 'content-type': 'application/json' }
    const { operations, rules } = context.modelOf(model)
    const maxBytes = rules.max_answer_bytes ?? null
    const about = { model, kind: 'poll', maxBytes, isBytes: true, signal, deadline } as const
    try {
      const answer = await callApi({ method, target, headers: { accept: '*/*', ...headers }, body }, access.key, about)
      const contentType = answer.headers['content-type'] ?? 'application/octet-stream'
      if (ACCOUNT_TROUBLE.has(answer.status)) {
        deps.log.error({ provider, status: answer.status }, 'the provider refuses our account')
        return null
      }
      const isOver = operations.some(({ task }) => task !== null && readState(answer, task) !== null)
      const content = answer.stream ?? withoutKey(answer.bytes, access.key)
      return { status: answer.status, contentType, body: content, isOver }
    } catch (error) {
      if (error instanceof ExchangeError) return null
      throw error
    }
  }
}

function withoutKey(bytes: Buffer, key: string): ProviderReply['body'] {
  return bytes.includes(key) ? Buffer.from(hideKey(bytes.toString(), key)) : bytes
}
