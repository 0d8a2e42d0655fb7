/** What the paths of ComfyUI's partner nodes are given beside the parts of every optional surface. */
import type { BlobStore } from '../../../domain/assets/blob-store.ts'
import type { PartnerNodes } from '../../../domain/models/partner/partner-nodes.ts'
import type { PartnerUploads } from '../../../domain/models/partner/partner-uploads.ts'
import type { RunTokens } from '../../../domain/models/partner/run-tokens.ts'

export interface PartnerParts {
  readonly nodes: PartnerNodes
  readonly runs: Pick<RunTokens, 'isToken' | 'open'>
  readonly uploads: PartnerUploads
  readonly blobs: Pick<BlobStore, 'open'>
  readonly maxBodyBytes: number
  /** How long a connection may be silent while its call runs. */
  readonly holdMs: number
}
