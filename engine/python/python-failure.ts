/** Failures of the Python conversions in `lib`, in the form in which nodes fail. */
import { PythonError } from '../../lib/python/numbers.ts'
import { NodeError } from '../node/node-error.ts'

/** Runs something that may throw a PythonError. */
export function inPython<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw error instanceof PythonError ? new NodeError(error.type, error.message) : error
  }
}
