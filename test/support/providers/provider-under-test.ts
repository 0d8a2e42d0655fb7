/** A provider of the shipped catalogue, with its shipped rules, pointed at a fake. Waits cost no time: the clock is moved. */
import path from 'node:path'
import { silentLog } from '../../../lib/log.ts'
import type { Network } from '../../../lib/outbound/network.ts'
import { openSafeFetcher } from '../../../lib/outbound/safe-fetch.ts'
import { readCatalogFiles } from '../../../src/adapters/providers/catalog/catalog-files.ts'
import { type ReadCatalog, readCatalog } from '../../../src/adapters/providers/catalog/read-catalog.ts'
import {
  type DeclarativeProvider,
  openDeclarativeProvider,
} from '../../../src/adapters/providers/declarative/declarative-provider.ts'
import { checkSandboxModel } from '../../../src/adapters/providers/sandbox/sandbox-provider.ts'
import { createCompileSchema } from '../../../src/adapters/schemas/ajv-input.ts'
import type { Json, JsonRecord, Model } from '../../../src/domain/models/catalog/model.ts'
import type { PollOutcome, SubmitOutcome } from '../../../src/domain/models/provider.ts'
import { createOwnCounts } from '../../../src/domain/service-nodes/shared-counts.ts'
import { createFixedClock, type FixedClock } from '../fixed-clock.ts'
import type { FakeProvider } from './fake-providers/fake-card.ts'
import { createLoopbackNetwork } from './loopback-network.ts'

const CATALOG = path.join(import.meta.dirname, '../../../models')
const MAX_POLLS = 20

let shipped: Promise<ReadCatalog> | null = null

/** Read once for all tests of a process. */
export function readShippedCatalog(): Promise<ReadCatalog> {
  shipped ??= readCatalogFiles(CATALOG).then((files) =>
    readCatalog(files, {
      compileSchema: createCompileSchema(),
      builtIn: { sandbox: checkSandboxModel, local: () => [] },
      isChecked: () => true,
    }),
  )
  return shipped
}

export async function shippedModel(id: string): Promise<Model> {
  const found = (await readShippedCatalog()).models.find((model) => model.id === id)
  if (found === undefined) throw new Error(`${id} is not in the catalogue`)
  return found
}

export interface ProviderUnderTest extends AsyncDisposable {
  readonly provider: DeclarativeProvider
  readonly clock: FixedClock
  /** How long the provider was waited for, in milliseconds of the moved clock. */
  readonly waits: readonly number[]
  readonly logged: readonly string[]
  /** `begins` before every try, `leftNothing` after one that was surely not taken. */
  readonly sends: readonly string[]
  submit(model: string, input: JsonRecord, options?: { readonly isRepeat: boolean }): Promise<SubmitOutcome>
  poll(model: string, handle: Json): Promise<PollOutcome>
  /** Submits and polls to the end. */
  run(model: string, input: JsonRecord): Promise<SubmitOutcome | PollOutcome>
}

export interface UnderTestOptions {
  readonly network?: Network
  readonly key?: string | null
  readonly isOwnKey?: boolean
  readonly values?: Readonly<Record<string, string>>
  readonly concurrency?: number
  readonly mediaHosts?: readonly string[]
  readonly baseUrl?: string
}

export async function openProviderUnderTest(
  fake: FakeProvider,
  options: UnderTestOptions = {},
): Promise<ProviderUnderTest> {
  const { providers } = await readShippedCatalog()
  const rules = providers.find(({ provider }) => provider === fake.card.provider)
  if (rules === undefined) throw new Error(`${fake.card.provider} is not in the catalogue`)
  const clock = createFixedClock()
  const fetcher = openSafeFetcher(options.network ?? createLoopbackNetwork())
  const waits: number[] = []
  const logged: string[] = []
  const sends: string[] = []
  const sending = { begins: () => void sends.push('begins'), leftNothing: () => void sends.push('leftNothing') }
  const note = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const key = options.key === undefined ? fake.card.key : options.key
  const settings = {
    baseUrl: options.baseUrl ?? fake.baseUrl,
    concurrency: options.concurrency ?? null,
    values: options.values ?? {},
  }
  const provider = openDeclarativeProvider(rules, settings, {
    keyFor: () => (key === null ? null : { key, isOwn: options.isOwnKey ?? false }),
    fetch: fetcher.fetch,
    media: { fetch: fetcher.fetch, allowedHosts: options.mediaHosts ?? [], readHosted: null },
    clock,
    random: () => 0.5,
    async sleep(ms) {
      waits.push(ms)
      clock.advance(ms)
    },
    log: { ...silentLog, warn: note, error: note, info: note },
    observe: () => {},
    counts: createOwnCounts(),
  })
  const signal = new AbortController().signal
  const limits = () => ({ signal, deadline: new Date(clock.now().getTime() + 600_000) })
  const under: ProviderUnderTest = {
    provider,
    clock,
    waits,
    logged,
    sends,
    async submit(id, input, { isRepeat } = { isRepeat: false }) {
      const model = await shippedModel(id)
      const body = Buffer.from(JSON.stringify(input))
      return provider.submit(
        { model, accountId: 'a', submitKey: '01890a5d-ac96-774b-bcce-b302099a8057', isRepeat, body, input },
        { ...limits(), sending },
      )
    },
    async poll(id, handle) {
      return provider.poll({ model: await shippedModel(id), accountId: 'a', handle }, limits())
    },
    async run(id, input) {
      const submitted = await under.submit(id, input)
      if (submitted.outcome !== 'accepted') return submitted
      let outcome: PollOutcome = { outcome: 'pending', pollAfterMs: 0 }
      for (let count = 0; count < MAX_POLLS && isOpen(outcome); count++)
        outcome = await under.poll(id, submitted.handle)
      return outcome
    },
    async [Symbol.asyncDispose]() {
      await provider[Symbol.asyncDispose]()
      await fetcher[Symbol.asyncDispose]()
    },
  }
  return under
}

function isOpen({ outcome }: PollOutcome): boolean {
  return outcome === 'pending' || outcome === 'unreachable'
}
