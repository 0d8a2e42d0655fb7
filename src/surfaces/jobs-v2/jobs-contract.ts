/** The contract of the Jobs API v2. */

import { type Contract, openContract } from '../kit/contracts/contract.ts'
import type { LoadOptions } from '../kit/contracts/openapi-document.ts'

const SOURCE = new URL('../../../spec/jobs-v2.openapi.json', import.meta.url)
/** Checked one by one, because each has its own refusal. */
const REQUEST_SCHEMAS = [
  ...['ExtraData', 'Priority', 'AssetFromHashRequest', 'JobWebhook', 'WebhookCreateRequest', 'WebhookUpdateRequest'],
  ...[
    'WebhookRotateRequest',
    'WebhookReplayRequest',
    'WeightUploadRequest',
    'BatchMode',
    'ReuseMode',
    'BatchChange',
    'BatchProduct',
  ],
]

export function loadJobsContract(options: LoadOptions): Contract {
  return openContract({ ...options, source: SOURCE, requestSchemas: REQUEST_SCHEMAS })
}
