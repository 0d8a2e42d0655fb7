import { testJobStore } from '../../../contracts/job-store/job-store.ts'
import { postgresOpener } from './temporary-store.ts'

testJobStore(postgresOpener)
