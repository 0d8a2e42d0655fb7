/**
 * What ComfyUI's partner nodes ask for: calls that cost something, and questions about their tasks. A call is the same as any
 * other call of a model: let in, held for, recorded before it is sent, polled to its end and charged once, whatever becomes of the
 * node. Only the answer differs: a node that follows a task by itself gets the provider's own answer to the submit, and asks on.
 */
import { hash } from 'node:crypto'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { type Caller, mustHaveScope } from '../../accounts/caller.ts'
import type { AssetStore } from '../../assets/asset-store.ts'
import type { Access } from '../access/model-access.ts'
import type { CallStore } from '../calls/call-store.ts'
import type { Listener, LiveCalls } from '../calls/live-calls.ts'
import type { RunAnswer, RunModel } from '../calls/run-call.ts'
import { toTaskName } from '../calls/told-task.ts'
import type { JsonRecord, Model } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import type { Provider, ProviderReply } from '../provider.ts'
import { RouterError } from '../router-error.ts'
import { createRequestDigest, joinInput } from './call-input.ts'
import type { AskRoute, CallRoute, FoundRoute, PartnerRoutes } from './partner-route.ts'

export interface PartnerCaller extends Caller {
  /** The run of a job that the request comes from; null: none is known. */
  readonly run: NamedRun | null
}

export interface PartnerBody {
  readonly bytes: Buffer
  readonly contentType: string
  /** Its fields, or those of the form that are texts; or why they cannot be read. */
  readonly fields: JsonRecord | RouterError
  /** Stands between the parts of a form; null: it is none. */
  readonly divider: string | null
}

export interface PartnerCall {
  readonly caller: PartnerCaller
  readonly found: FoundRoute & { readonly route: CallRoute }
  readonly query: Readonly<Record<string, string>>
  readonly body: PartnerBody
  readonly requestId: string
  readonly baseUrl: string
  readonly listener: Listener
  readonly holdBody: () => () => void
}

export interface PartnerQuestion {
  readonly caller: PartnerCaller
  readonly found: FoundRoute & { readonly route: AskRoute }
  readonly query: Readonly<Record<string, string>>
  readonly body: PartnerBody | null
  readonly signal: AbortSignal
}

/** Both throw RouterError and ServiceError. */
export interface PartnerNodes {
  readonly routes: () => Pick<PartnerRoutes, 'find' | 'methodsOf'>
  /** `delivered` is to be called once the answer was written. */
  call(call: PartnerCall): Promise<RunAnswer & { readonly delivered: () => void }>
  ask(question: PartnerQuestion): Promise<ProviderReply>
}

interface PartnerDeps {
  readonly routes: () => PartnerRoutes
  readonly access: Pick<Access, 'openForNodes'>
  readonly runModel: RunModel
  readonly store: Pick<CallStore, 'findTold'>
  readonly catalog: () => Pick<Catalog, 'findToRun'>
  readonly live: Pick<LiveCalls, 'find'>
  readonly providerOf: (name: string) => Provider | null
  readonly assets: Pick<AssetStore, 'findMany'>
  readonly clock: Clock
  readonly processId: string
}

const ASK_MS = 120_000
// Of the values that stand in an address.
const VALUE_MAX_LENGTH = 512

export function createPartnerNodes(deps: PartnerDeps): PartnerNodes {
  const nameCall = createCallNames(deps.processId)
  const join = createJoinRequests<RunAnswer>()
  const { findMany } = deps.assets
  const digestOf = createRequestDigest({ findAssets: (accountId, ids) => findMany(accountId, ids, deps.clock.now()) })
  return {
    routes: deps.routes,
    async call({ caller, found, query, body, listener, ...rest }) {
      mustHaveScope(caller, 'models:run')
      const { route, params } = found
      if (body.fields instanceof RouterError) throw body.fields
      const { input, failuresFor } = joinInput(route, { fields: body.fields, query, params })
      const model = chooseModel(route, input)
      const opened = { ...(await deps.access.openForNodes(caller, model)), checkInput: () => failuresFor(model) }
      const address = `${route.provider} ${route.name} ${JSON.stringify([params, query])}`
      const fingerprint = hash('sha256', `${address}\n${await digestOf(caller.accountId, body)}`, 'base64')
      const name = nameCall(caller.run, caller.accountId, fingerprint)
      const request = {
        ...rest,
        opened,
        accountId: caller.accountId,
        keyId: caller.keyId,
        jobId: caller.run?.jobId ?? null,
        key: name.key,
        fingerprint,
        body: body.bytes,
        contentType: body.contentType,
        input,
        followsTask: route.isTask,
      }
      const answer = await join(name.key, listener, (all) => deps.runModel({ ...request, listener: all }))
      return { ...answer, delivered: name.delivered }
    },
    async ask({ caller, found: { route, params }, query, body, signal }) {
      mustHaveScope(caller, 'models:run')
      if (body?.fields instanceof RouterError) throw body.fields
      const values = { ...toTexts(body?.fields ?? {}), ...query, ...params }
      const task = values[route.task] ?? ''
      // A task of another account looks exactly like one that does not exist.
      const told = await deps.store.findTold(caller.accountId, { task: toTaskName(route.provider, task) })
      const model = told === null ? null : deps.catalog().findToRun(told.modelId)
      if (told === null || model === null) throw noTask()
      const provider = deps.providerOf(route.provider)
      const deadline = new Date(deps.clock.now().getTime() + ASK_MS)
      const { accountId } = caller
      const sent = route.sendsBody ? (body?.bytes ?? null) : null
      const reply = await provider?.ask?.(
        { model, accountId, isOwnKey: told.isOwnKey, method: route.method, path: route.to, values, body: sent },
        { signal, deadline },
      )
      if (reply === undefined || reply === null) throw unreachable(route)
      // The call is charged now, and not only when it would be asked for next.
      if (reply.isOver) deps.live.find(told.id)?.hurry()
      return reply
    },
  }
}

function chooseModel({ modelAt, models, provider, name }: CallRoute, input: JsonRecord): Model {
  const named = modelAt === null ? [...models.keys()][0] : input[modelAt]
  const model = typeof named === 'string' ? models.get(named) : undefined
  if (model !== undefined) return model
  const shown = typeof named === 'string' ? JSON.stringify(named.slice(0, 128)) : `none (${modelAt})`
  throw new RouterError(
    'unknown_model',
    `this service has no price for the model ${shown} of ${provider} here (${name}), so nothing was sent; it has one for ${[...models.keys()].join(', ')}`,
  )
}

function toTexts(fields: JsonRecord): Record<string, string> {
  const texts = Object.entries(fields).filter(([, value]) => typeof value === 'string' || typeof value === 'number')
  return Object.fromEntries(texts.map(([name, value]) => [name, String(value).slice(0, VALUE_MAX_LENGTH)]))
}

function noTask(): RouterError {
  return new RouterError('unknown_request', 'this account has no such task here; tasks are known for a day')
}

function unreachable({ provider }: AskRoute): RouterError {
  const message = `${provider} cannot be asked about this task at the moment; the task itself continues`
  return new RouterError('unavailable', message, { retryAfterSeconds: 5 })
}

export function isCall(found: FoundRoute): found is PartnerCall['found'] {
  return found.route.kind === 'call'
}

/**
 * Names for the calls of partner nodes, which bring no Idempotency-Key. A node sends a request again when its connection broke,
 * and a job that lost its engine runs all of its nodes again: both must find the call that was made before and pay nothing more.
 * So equal requests of one job mean one call until its answer was delivered; an equal request after that is another call.
 *
 * What was delivered is remembered for each attempt of a job, and only here. The next attempt begins anew, and gets the answers of
 * the attempt before it one after the other. Requests without a job are told apart by the process that they came to.
 */
interface NamedRun {
  readonly jobId: string
  /** Changes with every attempt. */
  readonly attempt: string
}

interface CallName {
  readonly key: string
  /** The caller has its answer. */
  delivered(): void
}

const MAX_REMEMBERED = 10_000

type NameCall = (run: NamedRun | null, accountId: string, request: string) => CallName

/** `processId`: of this process, and of no other. */
function createCallNames(processId: string): NameCall {
  const delivered = new BoundedMap<string, number>(MAX_REMEMBERED)
  return (run, accountId, request) => {
    const place = `${accountId} ${run === null ? '' : `${run.jobId} ${run.attempt}`} ${request}`
    const number = delivered.get(place) ?? 0
    const owner = run === null ? `process:${processId}` : `job:${run.jobId}`
    return { key: `partner:${owner}:${request}:${number}`, delivered: () => delivered.set(place, number + 1) }
  }
}

type JoinRequests<Answer> = (
  key: string,
  listener: Listener,
  begin: (listener: Listener) => Promise<Answer>,
) => Promise<Answer>

interface Group<Answer> {
  readonly answer: Promise<Answer>
  readonly left: AbortController
  present: number
}

/**
 * Several requests that mean the same call wait for it together: a node whose connection broke may be back before anybody here
 * knows that it was gone. Whoever waits is there as long as one of them is.
 */
function createJoinRequests<Answer>(): JoinRequests<Answer> {
  const groups = new Map<string, Group<Answer>>()

  function enter(group: Group<Answer>, listener: Listener): void {
    group.present += 1
    const leave = () => {
      group.present -= 1
      if (group.present === 0) group.left.abort()
    }
    if (listener.left?.aborted) leave()
    else listener.left?.addEventListener('abort', leave, { once: true })
  }

  function open(key: string, begin: (listener: Listener) => Promise<Answer>): Group<Answer> {
    const left = new AbortController()
    const listener = { isConnected: () => !left.signal.aborted, left: left.signal }
    const answer = begin(listener).finally(() => {
      if (groups.get(key) === group) groups.delete(key)
    })
    const group: Group<Answer> = { answer, left, present: 0 }
    groups.set(key, group)
    return group
  }

  return (key, listener, begin) => {
    const known = groups.get(key)
    const group = known === undefined || known.left.signal.aborted ? open(key, begin) : known
    enter(group, listener)
    return group.answer
  }
}
