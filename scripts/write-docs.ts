/** Rewrites the documents that are generated from the sources. A test fails when they are out of date. */
import { writeFileSync } from 'node:fs'
import { describeConfig } from './describe-settings.ts'

writeFileSync(new URL('../docs/config.md', import.meta.url), describeConfig())
