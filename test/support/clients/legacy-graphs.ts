/** Small graphs that need no weights, for clients of the v1 API. */
export function saveGraph(color: number, prefix = 'client') {
  return {
    '1': {
      class_type: 'EmptyImage',
      inputs: { width: 32, height: 24, batch_size: 1, color },
      _meta: { title: 'EmptyImage' },
    },
    '2': { class_type: 'ImageInvert', inputs: { image: ['1', 0] }, _meta: { title: 'ImageInvert' } },
    '3': {
      class_type: 'SaveImage',
      inputs: { images: ['2', 0], filename_prefix: prefix },
      _meta: { title: 'SaveImage' },
    },
  }
}

/** Its images go over the socket and nowhere else. */
export function websocketGraph(color: number) {
  const { 3: _saved, ...rest } = saveGraph(color)
  return {
    ...rest,
    save_image_websocket_node: {
      class_type: 'SaveImageWebsocket',
      inputs: { images: ['2', 0] },
      _meta: { title: 'SaveImageWebsocket' },
    },
  }
}

/** Fails while it runs, not before. */
export function failingGraph() {
  return {
    '1': {
      class_type: 'EmptyImage',
      inputs: { width: 16, height: 16, batch_size: 1, color: 0 },
      _meta: { title: 'EmptyImage' },
    },
    '2': {
      class_type: 'SaveImage',
      inputs: { images: ['1', 0], filename_prefix: '../../x' },
      _meta: { title: 'SaveImage' },
    },
  }
}
