/** Opens what ComfyUI's partner nodes call through this service, over the router's own calls. */
import type { Clock } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Authenticate } from '../../domain/accounts/caller.ts'
import type { ContentSigner, SigningKey } from '../../domain/assets/signed-url.ts'
import { createPartnerNodes, type PartnerNodes } from '../../domain/models/partner/partner-nodes.ts'
import { createPartnerUploads, type PartnerUploads } from '../../domain/models/partner/partner-uploads.ts'
import { createRunTokens, createSignedClaims, type RunTokens } from '../../domain/models/partner/run-tokens.ts'
import type { Store } from '../../domain/store.ts'
import type { AssetActions } from '../asset-actions.ts'
import { type Router, toKeyNames } from './open-router.ts'

interface PartnerNodeParts {
  readonly router: Pick<Router, 'actions' | 'models'>
  readonly store: Pick<Store, 'assets' | 'calls' | 'jobs'>
  readonly assets: Pick<AssetActions, 'uploadAsset'>
  readonly signer: Pick<ContentSigner, 'sign'>
  readonly signingKeys: readonly SigningKey[]
  /** Authenticates without counting a request. */
  readonly identify: Authenticate
  readonly hasCredentials: boolean
  readonly brands: readonly string[]
  /** Identifies this process among all that use the store; a restart gets a new id. */
  readonly nodeId: string
  readonly clock: Clock
}

export interface OpenedPartnerNodes {
  readonly nodes: PartnerNodes
  readonly uploads: PartnerUploads
  readonly runs: RunTokens
}

export function openPartnerNodes(parts: PartnerNodeParts): OpenedPartnerNodes {
  const { router, store, signer, signingKeys, clock } = parts
  const { actions, models } = router
  const now = () => clock.now()
  return {
    nodes: createPartnerNodes({
      ...{ access: actions.access, runModel: actions.runModel, store: store.calls, assets: store.assets, clock },
      routes: models.routes,
      catalog: models.catalog,
      live: actions.live,
      providerOf: models.providerOf,
      processId: parts.nodeId,
    }),
    uploads: createPartnerUploads({
      claims: createSignedClaims('upload of a partner node', signingKeys, clock),
      signContent: signer.sign,
      uploadAsset: parts.assets.uploadAsset,
      newId: newUuidV4,
      clock,
    }),
    runs: createRunTokens({
      claims: createSignedClaims('run of a job', signingKeys, clock),
      identify: parts.identify,
      hasCredentials: parts.hasCredentials,
      keyNames: toKeyNames(parts.brands),
      async isRunning(accountId, jobId) {
        const job = await store.jobs.find(accountId, jobId, now())
        return job?.status === 'running' || job?.status === 'canceling'
      },
      now,
    }),
  }
}
