/**
 * A provider made of rules. It owns what all its calls share (connections, slots, the breaker) and puts the steps in
 * order; each step is in a file of its own under `calls`.
 */
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { readJsonPath } from '../../../domain/models/catalog/json-path.ts'
import type { Model } from '../../../domain/models/catalog/model.ts'
import type { Provider } from '../../../domain/models/provider.ts'
import { isFindable } from './calls/call-api.ts'
import { createAsk, createPoll } from './calls/poll-task.ts'
import { createSubmit } from './calls/submit-call.ts'
import {
  compileAuth,
  createCircuitBreaker,
  createTaskSlots,
  type DeclarativeDeps,
  openApiClient,
  type ProviderContext,
  type ProviderSettings,
} from './provider-context.ts'
import { type CompiledModel, compileModel } from './rules/compile-model.ts'
import type { ProviderRules } from './rules/rule-types.ts'
import { checkModelRules } from './rules/rules-schema.ts'

export interface DeclarativeProvider extends Provider, AsyncDisposable {
  readonly health: () => { readonly isOpen: boolean; readonly taken: number; readonly waiting: number }
}

export function openDeclarativeProvider(
  rules: ProviderRules,
  settings: ProviderSettings,
  deps: DeclarativeDeps,
): DeclarativeProvider {
  const concurrency = settings.concurrency ?? rules.concurrency
  const { fetch, tracer } = deps
  const client = openApiClient({
    baseUrl: settings.baseUrl ?? rules.base_url,
    apiHosts: rules.api_hosts,
    concurrency,
    fetch,
    ...(tracer !== undefined && { traces: { tracer, provider: rules.provider } }),
  })
  const compiled = new WeakMap<Model, CompiledModel>()
  const slots = createSemaphore(concurrency)
  const taskSlots = createTaskSlots()
  const context: ProviderContext = {
    rules,
    client,
    slots,
    concurrency,
    taskSlots,
    breaker: createCircuitBreaker(deps.clock),
    authHeaders: compileAuth(rules.auth, deps.clock),
    settings: { ...rules.settings, ...settings.values },
    messages: rules.messages.map(readJsonPath),
    validationList: rules.validation_list === undefined ? null : readJsonPath(rules.validation_list),
    modelOf(model) {
      let found = compiled.get(model)
      if (found === undefined) {
        found = compileModel(model, rules)
        compiled.set(model, found)
      }
      return found
    },
  }
  const { poll, cancel } = createPoll(context, deps)
  return {
    name: rules.provider,
    access(accountId) {
      const key = deps.keyFor(accountId)
      if (key === null) return 'none'
      return key.isOwn ? 'own_key' : 'service_key'
    },
    checkModel: (model) => checkModelRules(model, rules),
    deduplicates(model, input) {
      const compiledModel = context.modelOf(model)
      return compiledModel.rules.deduplicates === true || (input !== null && isFindable(compiledModel, input))
    },
    announcesSends: true,
    submit: createSubmit(context, deps),
    poll,
    cancel,
    ask: createAsk(context, deps),
    health: () => ({ isOpen: context.breaker.isOpen, taken: slots.taken, waiting: slots.waiting }),
    async [Symbol.asyncDispose]() {
      taskSlots.clear()
      await client[Symbol.asyncDispose]()
    },
  }
}
