"""The notebooks under examples run from their first cell to their last."""

import pathlib

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

FOLDER = next((p / "examples" / "notebooks" for p in pathlib.Path(__file__).resolve().parents if (p / "examples" / "notebooks").exists()), None)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")) if FOLDER else [], ids=lambda p: p.stem)
def test_notebook(path):
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("text/html" in o.get("data", {}) or o.output_type == "stream" for o in outputs)
