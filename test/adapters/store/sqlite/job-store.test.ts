import { testJobStore } from '../../../contracts/job-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testJobStore(sqliteOpener)
