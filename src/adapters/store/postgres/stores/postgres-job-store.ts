import type { JobStore } from '../../../../domain/jobs/job-store.ts'
import type { StoreParts } from './store-parts.ts'
import { unwritten } from './unwritten.ts'

export const createJobStore = (_: StoreParts) => unwritten<JobStore>('jobs')
export const createJobCancels = (_: StoreParts) => unwritten<Pick<JobStore, 'cancel'>>('cancels')
