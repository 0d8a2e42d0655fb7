import { testJobStore } from '../../../contracts/job-store/job-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testJobStore(sqliteOpener)
