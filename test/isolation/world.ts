/** Two accounts on one service; one of them owns something of every kind, including a deployment. */

import { MODELS } from '../support/app/start-router.ts'
import { type SharedApp, startShared, type Tenant } from '../support/app/start-shared.ts'
import { createFakeProvider, type FakeProvider } from '../support/providers/fake-provider.ts'

export interface World extends AsyncDisposable {
  readonly app: SharedApp
  /** Runs the models of the router. */
  readonly provider: FakeProvider
  /** The caller. It owns nothing that a case names. */
  readonly caller: Tenant
  /** Somebody else, whose things are named. */
  readonly other: Tenant
  /** Of `other` alone, and ready. */
  readonly deployment: string
  /** What has to be let go before the service can end. */
  readonly held: DisposableStack
}

const DEPLOYMENT = 'theirs'
const LIMITS = { requestsPerMinute: null, concurrentJobs: 1, routerConcurrency: 2 }

export async function openWorld(): Promise<World> {
  const provider = createFakeProvider()
  const settings = {
    kind: 'serverless',
    deploymentsDomain: 'example.test',
    webhookPrivateNetwork: 'true',
    builds: 'all',
  }
  const app = await startShared(settings, {
    env: { ATELIER_SECRET_KEY: 'ab'.repeat(32) },
    overrides: { models: { providers: [provider], models: MODELS } },
  })
  const [caller, other]: Tenant[] = [
    await app.account('caller', LIMITS),
    await app.account('owner', { ...LIMITS, creditFloorMicros: -1_000_000_000 }),
  ]
  await app.admin('POST', '/deployments', { id: DEPLOYMENT, account_id: other.id, workers: 1 })
  await app.untilDeployment(DEPLOYMENT, 'ready')
  const held = new DisposableStack()
  return {
    ...{ app, provider, caller, other, held, deployment: DEPLOYMENT },
    async [Symbol.asyncDispose]() {
      held.dispose()
      await app[Symbol.asyncDispose]()
    },
  }
}
