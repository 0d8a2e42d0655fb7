/** Rewrites the documents that are made from the sources. A test fails while they are out of step. */
import { writeFileSync } from 'node:fs'
import { describeConfig } from '../src/config/settings/describe-settings.ts'

writeFileSync(new URL('../docs/config.md', import.meta.url), describeConfig())
