import type { RunRecordStore } from '../../../../domain/jobs/read/recorded-jobs.ts'
import type { StoreParts } from './store-parts.ts'
import { unwritten } from './unwritten.ts'

export const createRunRecordStore = (_: StoreParts) => unwritten<RunRecordStore>('records')
