import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import { testEventBus } from '../../contracts/event-bus.ts'

// Delivery is part of publishing, so there is nothing to wait for.
testEventBus({ open: () => createLocalBus<string>(), settle: async () => {} })
