/** What the suites about summaries share: recipes, and accounts whose jobs are submitted, run and searched for. */
import type { Lease, NewJob } from '../../../src/domain/jobs/job-store.ts'
import { type JobRecipe, toTerm } from '../../../src/domain/jobs/submit/job-origin.ts'
import { NO_FILTER, type SummaryFilter } from '../../../src/domain/jobs/summaries/summary-store.ts'
import { at, newJobId, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'

export const NOW = at(60_000)

export function recipeOf(title: string, classes: readonly string[], weights: readonly string[] = []): JobRecipe {
  const terms = [...classes.map((name) => toTerm('class', name)), ...weights.map((name) => toTerm('weights', name))]
  return { key: classes.join().slice(0, 40), title, terms: terms.join('').replaceAll('\n\n', '\n') }
}

export const POSTCARD = recipeOf('Postcard', ['KSampler', 'SaveImage'], ['flux1-dev.safetensors'])
export const POSTER = recipeOf('Poster large', ['UltimateSDUpscale', 'SaveImage'], ['sdxl.safetensors'])

export async function claim(tenant: Tenant): Promise<Lease> {
  const claimed = await tenant.claim({ now: at(1000) })
  if (claimed === null) throw new Error('there was nothing to claim')
  return { jobId: claimed.job.id, leaseId: claimed.leaseId }
}

export interface SummaryRig {
  readonly store: () => WholeStoreUnderTest
  readonly newTenant: ReturnType<typeof createNewTenant>
}

export function createNewTenant(store: () => WholeStoreUnderTest) {
  return async function newTenant() {
    const tenant = await Tenant.create(store())
    const { accountId } = tenant
    const search = async (fields: Partial<SummaryFilter> = {}, limit = 100) => {
      const filter = { ...NO_FILTER, ...fields }
      const page = await store().summaries.search(accountId, {
        filter,
        order: 'newest',
        limit,
        after: null,
        now: NOW,
      })
      return page.summaries
    }
    const ids = async (fields: Partial<SummaryFilter> = {}) => (await search(fields)).map(({ id }) => id)
    let count = 0
    const submit = async (fields: Partial<NewJob> = {}) => {
      count += 1
      const id = newJobId()
      await tenant.submit({ id, createdAt: at(count), recipe: POSTCARD, ...fields })
      return id
    }
    /** The job that waits longest runs and ends. */
    const run = async (code: string | null = null) => {
      const lease = await claim(tenant)
      const error =
        code === null ? null : { code, message: 'm'.repeat(500), nodeId: '7', classType: 'K', traceback: 't' }
      const status = code === null ? 'succeeded' : 'failed'
      await store().jobs.commit(lease, { finish: { status, from: ['running'], at: at(2000), error } })
      return lease.jobId
    }
    return { tenant, accountId, search, ids, submit, run }
  }
}
