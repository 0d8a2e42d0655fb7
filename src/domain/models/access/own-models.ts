/** A model that is to run; and models that belong to one account, which are found and listed for that account alone. */
import { type Caller, hasScope, type Scope } from '../../accounts/caller.ts'
import type { Serving } from '../alternates/serving.ts'
import type { Model } from '../catalog/model.ts'
import type { Catalog, CataloguedModel, CheckInput } from '../catalog/model-catalog.ts'
import type { Estimate } from '../pricing/pricing.ts'
import type { Provider } from '../provider.ts'

export interface OpenedModel {
  readonly model: Model
  readonly checkInput: CheckInput
  /** As it is called for a conversation; left out or null: it takes none. */
  readonly chat?: CataloguedModel['chat']
  readonly provider: Provider
  /** The account brings its own key: nothing is held or charged, and no allowance counts. */
  readonly isOwnKey: boolean
  /** Which keys of the account at providers that was decided by; left out: by none. */
  readonly keys?: {
    readonly version: number
    /** Decides again, by those that it has now. Throws RouterError. */
    again(): Promise<Pick<OpenedModel, 'isOwnKey' | 'keys'>>
  }
  /** Who may serve it; left out: its own provider alone. */
  readonly serving?: Serving
  /** Of a model whose calls are charged elsewhere; left out: its price says it. */
  readonly estimate?: () => Estimate
}

/** Whose models are meant, and which of them a key reaches. */
type Owner = Pick<Caller, 'accountId' | 'endpoints'>

/** Under ids that another account may use for its own. */
export interface OwnModels {
  /** null: the account has none under this id. */
  find(caller: Owner, id: string): Promise<OwnModel | null>
  /** By id, after the given one. */
  list(caller: Owner, page: { readonly after: string | null; readonly limit: number }): Promise<readonly Model[]>
  /** To collect a call with, whatever became of its model; null: the id is none of an own model. */
  toCollect(id: string): Model | null
}

export const NO_OWN_MODELS: OwnModels = { find: async () => null, list: async () => [], toCollect: () => null }

/** Nothing is held or charged for its calls: what they set off has a price of its own. */
export interface OwnModel extends Omit<OpenedModel, 'isOwnKey'> {
  /** As lists of allowed models name it. */
  readonly listedId: string
}

interface Page {
  readonly after: string | null
  readonly limit: number
}

export function createOwnAccess(
  own: Pick<OwnModels, 'find' | 'list'>,
  toVisible: (caller: Caller) => (model: Model) => boolean,
) {
  async function list(caller: Caller, { after, limit }: Page): Promise<Model[]> {
    const found: Model[] = []
    for (let from = after; ; ) {
      const page = await own.list(caller, { after: from, limit })
      found.push(...page.filter(toVisible(caller)))
      if (page.length < limit || found.length >= limit) return found
      from = page.at(-1)?.id ?? null
    }
  }

  return {
    /** `scope`: without it nobody learns that the account has such a model. */
    find: async (caller: Caller, id: string, scope: Scope): Promise<OwnModel | null> =>
      hasScope(caller, scope) ? own.find(caller, id) : null,
    async page(caller: Caller, catalog: Catalog, { after, limit }: Page) {
      const shared = catalog.page(after, limit, toVisible(caller))
      const owned = hasScope(caller, 'endpoints:read') ? await list(caller, { after, limit: limit + 1 }) : []
      const ids = new Set(owned.map(({ id }) => id))
      const models = [...owned, ...shared.models.filter(({ id }) => !ids.has(id))].toSorted((a, b) =>
        a.id < b.id ? -1 : 1,
      )
      return { models: models.slice(0, limit), hasMore: shared.hasMore || models.length > limit }
    },
  }
}
