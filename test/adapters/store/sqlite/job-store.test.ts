import { testJobStore } from '../../../contracts/job-store/job-store.ts'
import { testJobStoreForesee } from '../../../contracts/job-store/job-store-foresee.ts'
import { sqliteOpener } from './temporary-store.ts'

testJobStore(sqliteOpener)
testJobStoreForesee(sqliteOpener)
