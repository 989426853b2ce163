// Answers questions apart from the page, so that the page goes on while drives are simulated.
let lodger;
onmessage = async ({ data }) => {
  if (data.module) {
    lodger = WebAssembly.instantiate(data.module, {});
    return;
  }
  try {
    const instance = await lodger;
    postMessage({ id: data.id, answer: ask(instance, data.question) });
  } catch (error) {
    // A trap leaves the module's memory as it was just then: the next question gets a new worker.
    postMessage({ id: data.id, trap: String(error) });
  }
};
